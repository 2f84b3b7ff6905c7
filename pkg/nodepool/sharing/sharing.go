// Package sharing knows the ways in which GPUs are handed out, one file for each stack: what a node of the stack says,
// what a pod asks for, which pods hold what of its cards, and what proves it. Reader reads a NodeObject with one list
// of readers, one for each stack; the result is a GPUs: the product and number of the cards, how they are shared, what
// pods can request, what is free, and what is wrong. What the node does not prove is left out. RequestOf reads what a
// pod asks of single cards: a Request.
//
// To add a stack, add the names of its resources to gpuinfo/resource.go, and write a file here; koordinator.go is a
// short example. If nodes have marks of the stack, the file has a row in claims; if it shows single cards, one in
// cardSources; if it hands out parts of cards, one in parts, and a case in GPUs.Parts. Annotations that it reads are
// in ReadsAnnotation for nodes and in PodAnnotations for pods. Which part of the node a pod pays for is in
// price/share.go.
//
// The package must not know pools, clusters or where pods go, and it must not use files, clients or the clock.
// Heliostat's agent publishes what the driver reports in the node annotation heliostat.dev/gpus, as an AgentReport.
package sharing

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// ReadsAnnotation reports whether a Reader needs an annotation of nodes; it may use any label.
func ReadsAnnotation(key string) bool {
	return slices.Contains([]string{hamiRegister, hamiHandshake, hamiCordon, volcanoRegister, AgentAnnotation}, key) ||
		strings.HasPrefix(key, ascendRegister) ||
		slices.ContainsFunc(PoolLabels, func(row PoolLabel) bool { return row.Key == key })
}

// Read describes the GPUs of one node.
func (g Reader) Read(node NodeObject) GPUs {
	r := &reading{node: node, names: g.Names, at: g.At, gpus: GPUs{
		Name: node.Name, Kind: gpuinfo.UnknownKind, Isolation: gpuinfo.UnknownIsolation, Problems: []Problem{},
	}}
	r.supplied = len(node.Devices) > 0
	r.node.Devices = slices.DeleteFunc(slices.Clone(node.Devices),
		func(d DRADevice) bool { return d.Type == OtherDevice })
	if pool, _, ok := g.PoolAndProvider(node); ok {
		r.gpus.Pool = &pool
	}
	for _, text := range node.Unreadable {
		r.problem(AmountUnreadable, text)
	}
	r.node.Allocatable, r.node.Capacity = r.plausible("allocatable", node.Allocatable), r.plausible("capacity",
		node.Capacity)
	r.readUnits()
	r.readProduct()
	r.readCards()
	for _, claim := range claims {
		if claim.read(r) {
			break
		}
	}
	r.readAscend()
	r.gpus.Unregistered = r.noHAMi()
	r.readFree()
	r.readBadGPUs()
	r.readHealthy()
	r.readProblems()
	return r.gpus
}

// claims are the ways of sharing GPUs, each with the marks that it leaves on a node. The first that recognizes the node
// decides. First come those that make everything else unreliable, then those with marks of their own, then those that
// share the name nvidia.com/gpu, and last cards, which leave no mark: labels or their number prove that they are whole.
var claims = []struct {
	name string
	read func(*reading) bool
}{
	{"a change of MIG layout is in progress: nothing else is reliable", (*reading).readMIGChange},
	{"instances that OpenShift's slicer creates on demand", (*reading).readDAS},
	{"single strategy without one common profile: nothing is announced", (*reading).readMIGInvalid},
	{"devices of ResourceSlices, and no resource announces any", (*reading).readDRA},
	{"HAMi's annotation, or its label with more units than cards", (*reading).readHAMi},
	{"Volcano's vgpu resources", (*reading).readVolcano},
	{"aliyun.com/gpu-mem", (*reading).readGPUMemory},
	{"volcano.sh/gpu-memory", (*reading).readVolcanoMemory},
	{"nvidia.com/mig-* in resources or labels", (*reading).readMIGMixed},
	{"GKE's labels for sharing and partitions", (*reading).readGKE},
	{"labels of feature discovery with unknown values", (*reading).readOdd},
	{"feature discovery's labels for sharing", (*reading).readSharing},
	{"feature discovery's labels for the single strategy", (*reading).readMIGSingle},
	{"AMD's names and labels of modes", (*reading).readAMD},
	{"devices under a configured name of known kind", (*reading).readConfigured},
	{"a virtual machine with a part of a card", (*reading).readPart},
	{"cards, proven or not", (*reading).readWhole},
}

// reading is one node while it is being read.
type reading struct {
	node  NodeObject
	names gpuinfo.Names
	at    time.Time
	gpus  GPUs
	// devices are the resources that are announced as devices, with the highest number that the node ever announced: a
	// broken device still shows its kind.
	devices map[string]int64
	// unregistered: HAMi's scheduler takes no cards from the register of its agent, because it is invalid or names none
	// (HAMi v2.9.0: NvidiaGPUDevices.GetNodeDevices in pkg/device/nvidia/device.go returns an error, for which
	// Scheduler.register in pkg/scheduler/scheduler.go skips the node). Cards that a running scheduler registered
	// before that stay in its memory, which nothing shows.
	unregistered bool
	// unknown: the node announces a resource that looks like GPUs and is in no table.
	unknown bool
	// supplied: ResourceSlices offer GPUs on the node, those of drivers whose attributes are not known too.
	supplied bool
	// report is what Heliostat's agent wrote, without cards if that does not count; nil until it is needed.
	report *AgentReport
	// product is the entry of the product table, for models that support MIG.
	product      gpuinfo.Product
	productKnown bool
}

func (r *reading) is(kind gpuinfo.Kind, isolation gpuinfo.Isolation) bool {
	r.gpus.Kind, r.gpus.Isolation = kind, isolation
	return true
}

// label returns the first of the labels that is set and not empty.
func (r *reading) label(keys ...string) string {
	for _, key := range keys {
		if value := r.node.Labels[key]; value != "" {
			return value
		}
	}
	return ""
}

// number reads a label that counts, and reports an invalid value as a problem.
func (r *reading) number(key string) (int64, bool) {
	text, set := r.node.Labels[key]
	if !set {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		r.problem(LabelUnreadable, key+"="+text+" is not a count")
		return 0, false
	}
	if most := mostOf(key); n > most && !slices.Contains(cardCounts, key) {
		r.problem(LabelUnreadable, fmt.Sprintf("%s=%d: want at most %d", key, n, most))
		return 0, false
	}
	return n, true
}

func (r *reading) memory(resource string, mib int64) {
	if mib <= 0 {
		return
	}
	if r.gpus.MemoryMiB == nil {
		r.gpus.MemoryMiB = map[string]int64{}
	}
	r.gpus.MemoryMiB[resource] = mib
}

// announced returns the device resources with units, healthy or not, sorted.
func (r *reading) announced() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.devices)),
		func(name string) bool { return r.devices[name] == 0 })
}

// mostOf bounds what a label can count: shares of a device are devices too.
func mostOf(key string) int64 {
	if key == labelGKEClients || strings.HasSuffix(key, ".replicas") {
		return mostDevices
	}
	return mostAmount
}

func (r *reading) problem(code ProblemCode, message string) {
	if p := (Problem{Code: code, Message: message}); !slices.Contains(r.gpus.Problems, p) {
		r.gpus.Problems = append(r.gpus.Problems, p)
	}
}

// The effects of a taint that keep a pod away; PreferNoSchedule does not.
const (
	NoSchedule = "NoSchedule"
	NoExecute  = "NoExecute"
)

// Taint keeps away pods that do not tolerate it.
type Taint struct {
	Key, Value, Effect string
}

// String returns key=value:effect, as kubectl writes it, without = if there is no value.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// NodeObject is what a Kubernetes Node object shows about its GPUs. A landing.Node has only what decides where pods
// fit.
type NodeObject struct {
	Name                string
	Labels, Annotations map[string]string
	Taints              []Taint
	Unschedulable       bool
	// Capacity and Allocatable have the extended resources, zeros included; nil if the object does not show them.
	Capacity, Allocatable map[string]int64
	// Unreadable describes each invalid amount in the object, and what a valid one is. Such an amount is in neither
	// Capacity nor Allocatable.
	Unreadable []string
	// Conditions are statuses (True, False, Unknown) by type.
	Conditions map[string]string
	// Messages are what conditions about GPUs say that report a fault, by type.
	Messages map[string]string
	// Pods are the pods on the node that have not ended; nil while pods are unknown, which differs from none.
	Pods []Pod
	// Devices are the devices that ResourceSlices offer on the node.
	Devices []DRADevice
	// BootID identifies the machine's current boot, from status.nodeInfo; empty if it is not shown.
	BootID string
}

// Reader configures how nodes are read. The zero value uses the built-in tables.
type Reader struct {
	// Names adds resource names to the built-in ones.
	Names gpuinfo.Names
	// PoolLabel is a label that names the pool of a node. It takes precedence over those of cloud providers.
	PoolLabel string
	// TopologyLabels are the labels of Kubernetes nodes that Ray nodes have as well.
	TopologyLabels []TopologyLabel
	// At is when the nodes were read, for the age of annotations; zero for nodes from a file, which may have any age.
	At time.Time
}

// TopologyLabel says that each Ray node has the label Ray with the value of the label Node of its Kubernetes node.
type TopologyLabel struct{ Node, Ray string }

// PoolLabels are the labels and annotations that name the pool of a node. If several are set, the first row wins.
var PoolLabels = []PoolLabel{
	{"kubernetes.azure.com/agentpool", "aks", "AKS documentation"},
	{"agentpool", "aks", "AKS documentation, older"},
	{"karpenter.sh/nodepool", "karpenter", "Karpenter"},
	{"karpenter.sh/provisioner-name", "karpenter", "Karpenter before v1beta1"},
	{"eks.amazonaws.com/nodegroup", "eks", "EKS documentation, managed node groups"},
	{"alpha.eksctl.io/nodegroup-name", "eks", "eksctl, self-managed node groups too"},
	{"cloud.google.com/gke-nodepool", "gke", "GKE documentation"},
	{"alibabacloud.com/nodepool-id", "ack", "ACK nodes"},
	{"node.alibabacloud.com/nodepool-id", "ack", "ACK, a script in its documentation"},
	{"oci.oraclecloud.com/node-pool-id", "oke", "Cluster Autoscaler for OKE; an annotation"},
}

// PoolLabel is a label or annotation that names the pool of a node, and the provider that sets it.
type PoolLabel struct{ Key, Provider, source string }

// PoolAndProvider returns the pool of a node, from its labels and annotations, and the pool's provider; false if none
// names it.
func (g Reader) PoolAndProvider(node NodeObject) (name, provider string, ok bool) {
	if name := node.Labels[g.PoolLabel]; g.PoolLabel != "" && name != "" {
		return name, "configured", true
	}
	for _, row := range PoolLabels {
		for _, from := range []map[string]string{node.Labels, node.Annotations} {
			if name := from[row.Key]; name != "" {
				return name, row.Provider, true
			}
		}
	}
	return "", "", false
}

// The highest plausible number of units of one resource on a node. The kubelet receives the names of all devices in one
// gRPC message of at most 16 MiB, and a name takes more than 16 bytes. Memory may be counted in bytes.
const (
	mostDevices = 1 << 20
	mostAmount  = 1 << 50
)

// most returns the highest plausible number of units of a resource on a node. isGPU is false if the name is not a GPU
// resource.
func (g Reader) most(name string) (units int64, isGPU bool) {
	switch resource, err := g.Names.Resource(name); {
	case err == nil:
		return MostUnits(resource), true
	case isUnknownGPU(err):
		return mostAmount, true
	}
	return 0, false
}

func MostUnits(resource gpuinfo.Resource) int64 {
	if resource.Role == gpuinfo.Devices {
		return mostDevices
	}
	return mostAmount
}

// CanAnnounce reports whether the node shows a readable, plausible amount of an extended resource as allocatable.
func (g Reader) CanAnnounce(node NodeObject, name string) bool {
	n, shown := node.Allocatable[name]
	most, isGPU := g.most(name)
	return shown && n >= 0 && (!isGPU || n <= most)
}

// plausible drops implausible amounts of GPU resources, which would otherwise be counted as cards and added up, and
// reports each as a problem.
func (r *reading) plausible(field string, shown map[string]int64) map[string]int64 {
	kept := maps.Clone(shown)
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		n := shown[name]
		most, isGPU := Reader{Names: r.names}.most(name)
		if !isGPU || n >= 0 && n <= most {
			continue
		}
		r.problem(AmountUnreadable,
			fmt.Sprintf("status.%s[%q] is %d: want 0 to %d; it is ignored", field, name, n, most))
		delete(kept, name)
	}
	return kept
}

// readUnits reads the announced resources. If the node shows only capacity, that is used for allocatable.
func (r *reading) readUnits() {
	shown := r.node.Allocatable
	if shown == nil {
		shown = r.node.Capacity
	}
	r.devices = map[string]int64{}
	if shown == nil {
		return
	}
	r.gpus.Units = map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		resource, err := r.names.Resource(name)
		switch {
		case err == nil:
			r.gpus.Units[name] = shown[name]
			if resource.Role == gpuinfo.Devices {
				r.devices[name] = max(shown[name], r.node.Capacity[name])
			}
		case isUnknownGPU(err) && r.forVirtualMachines():
		case isUnknownGPU(err):
			// KubeRay counts every resource whose name ends in gpu as GPUs.
			if strings.HasSuffix(name, "gpu") {
				r.gpus.Units[name] = shown[name]
			}
			if shown[name] > 0 {
				r.unknown = true
				r.problem(ResourceNotKnown, err.Error())
			}
		case errors.Is(err, gpuinfo.ErrForeign) && shown[name] > 0:
			r.unknown = true
			r.problem(ResourceForeign, err.Error()+"; if it is one, say so with --resource "+name+"=KIND")
		}
	}
	for name := range r.devices {
		if r.leftOver(name) {
			r.devices[name] = 0
		}
	}
}

// leftOver reports whether a resource is no longer announced while a resource of another domain is: its plugin was
// removed, and the kubelet keeps the name with its old capacity and allocatable 0. Volcano's scheduler ignores such a
// node, whatever its register says (volcano, NewGPUDevices in pkg/scheduler/api/devices/nvidia/vgpu/device_info.go).
func (r *reading) leftOver(name string) bool {
	domain, _, _ := strings.Cut(name, "/")
	return r.gpus.Units[name] == 0 && someOf(r.devices, func(other string, _ int64) bool {
		return r.gpus.Units[other] > 0 && !strings.HasPrefix(other, domain+"/")
	})
}

func isUnknownGPU(err error) bool { return errors.Is(err, gpuinfo.ErrUnknownResource) }
