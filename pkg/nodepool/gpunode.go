package nodepool

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// NodeObject is what of a Kubernetes Node tells about its GPUs, as the API shows it. It is more than a Node, which only says what
// decides where pods can land.
type NodeObject struct {
	Name                string
	Labels, Annotations map[string]string
	Taints              []Taint
	Unschedulable       bool
	// Capacity and Allocatable have the extended resources, those with zero too; nil where the object does not show them.
	Capacity, Allocatable map[string]int64
	// Unreadable says of each amount in the object that is none, and is therefore in neither, what it is and what would be right.
	Unreadable []string
	// Conditions are statuses (True, False, Unknown) by type.
	Conditions map[string]string
	// Pods are those on the node that have not ended; nil where pods are not known, which is not the same as none.
	Pods []PodObject
	// Devices are what ResourceSlices offer on the node.
	Devices []DRADevice
	// BootID is the kernel's number of the machine's last start, from status.nodeInfo; empty where it is not shown.
	BootID string
}

// NodeGPUs is what is understood of a node's GPUs. What the node cannot prove is left out (nil, or kind and isolation unknown): nothing is
// better than a wrong number.
type NodeGPUs struct {
	Name string  `json:"name"`
	Pool *string `json:"pool"`
	// Product is the model as the node names it, without what feature discovery appends for slices and shares.
	Product *string `json:"product"`
	// Cards are physical cards.
	Cards *int64       `json:"cards"`
	Kind  gpuinfo.Kind `json:"kind"`
	// Units are what pods can ask for, by resource, zeros too.
	Units map[string]int64 `json:"units"`
	// MemoryMiB is the memory behind one unit, only of resources where something stands for it.
	MemoryMiB map[string]int64 `json:"memoryMiB"`
	// UnitsPerCard is set for memory that is handed out in units: a request must fit one card.
	UnitsPerCard map[string]int64  `json:"unitsPerCard"`
	Isolation    gpuinfo.Isolation `json:"isolation"`
	// CardMemoryMiB is the memory of one physical card.
	CardMemoryMiB *int64 `json:"cardMemoryMiB"`
	// Profile is the MIG profile behind a plain resource name, Replicas how many share one device.
	Profile  *string `json:"profile"`
	Replicas *int64  `json:"replicas"`
	// Free counts the units that no pod on the node asks for, by resource; nil while pods are not known.
	Free map[string]int64 `json:"free"`
	// WellUnits is what the cards that are well give of a resource, where that is less than its Units; nil while no card is known to be ill.
	WellUnits map[string]int64 `json:"wellUnits"`
	// PerCard is what is known of single cards; nil where nothing is.
	PerCard  []Card    `json:"perCard"`
	Problems []Problem `json:"problems"`
}

// GPUReader says how nodes are read. The zero value reads all that is built in.
type GPUReader struct {
	// Names has resource names beyond the built-in ones.
	Names gpuinfo.Names
	// PoolLabel is a label that names the pool of a node and goes before those of the clouds.
	PoolLabel string
	// At is when the nodes were seen, by which the age of annotations is judged; zero for nodes of a file, which may be of any age.
	At time.Time
}

// Read says what is understood of one node.
func (g GPUReader) Read(node NodeObject) NodeGPUs {
	r := &gpuReading{node: node, names: g.Names, at: g.At, gpus: NodeGPUs{
		Name: node.Name, Kind: gpuinfo.UnknownKind, Isolation: gpuinfo.UnknownIsolation, Problems: []Problem{},
	}}
	if pool, _, ok := g.poolOf(node); ok {
		r.gpus.Pool = &pool
	}
	for _, text := range node.Unreadable {
		r.problem(AmountUnreadable, text)
	}
	r.node.Allocatable, r.node.Capacity = r.plausible("allocatable", node.Allocatable), r.plausible("capacity", node.Capacity)
	r.readUnits()
	r.readProduct()
	r.readCards()
	for _, claim := range claims {
		if claim.read(r) {
			break
		}
	}
	r.readFree()
	r.readWell()
	r.readProblems()
	return r.gpus
}

// gpuReading is one node while it is being read.
type gpuReading struct {
	node  NodeObject
	names gpuinfo.Names
	at    time.Time
	gpus  NodeGPUs
	// devices are the resources that are handed out as devices, most that the node ever announced of them: a broken one still tells
	// its kind.
	devices map[string]int64
	// unknown: something that speaks of GPUs is announced, and nobody knows what it is.
	unknown bool
	// product is what the model means where MIG is possible.
	product      gpuinfo.Product
	productKnown bool
}

// claims are the ways in which GPUs are handed out, each with the marks it leaves on a node. The first that recognises the node decides: what
// makes everything else untrue stands first, then what leaves marks of its own, then what shares the name nvidia.com/gpu, and whole cards
// last, for they leave none.
var claims = []struct {
	name string
	read func(*gpuReading) bool
}{
	{"a change of MIG layout is under way: nothing is to be trusted", (*gpuReading).readMIGChange},
	{"single strategy without one common profile: nothing is announced", (*gpuReading).readMIGInvalid},
	{"devices of ResourceSlices where no resource announces any", (*gpuReading).readDRA},
	{"HAMi's annotation, or its label with more units than cards", (*gpuReading).readHAMi},
	{"Volcano's vgpu resources", (*gpuReading).readVolcano},
	{"aliyun.com/gpu-mem", (*gpuReading).readGPUMemory},
	{"nvidia.com/mig-* in resources or labels", (*gpuReading).readMIGMixed},
	{"GKE's labels for sharing and partitions", (*gpuReading).readGKE},
	{"labels of feature discovery with values that nobody knows", (*gpuReading).readOdd},
	{"feature discovery's labels for sharing", (*gpuReading).readSharing},
	{"feature discovery's labels for the single strategy", (*gpuReading).readMIGSingle},
	{"devices under a configured name of known kind", (*gpuReading).readConfigured},
	{"cards", (*gpuReading).readWhole},
}

// is sets kind and isolation together.
func (r *gpuReading) is(kind gpuinfo.Kind, isolation gpuinfo.Isolation) bool {
	r.gpus.Kind, r.gpus.Isolation = kind, isolation
	return true
}

// readUnits takes what is announced. Where only capacity was posted it stands for allocatable.
func (r *gpuReading) readUnits() {
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
		case isUnknownGPU(err):
			// KubeRay takes every resource whose name ends in gpu for GPUs.
			if strings.HasSuffix(name, "gpu") {
				r.gpus.Units[name] = shown[name]
			}
			if shown[name] > 0 {
				r.unknown = true
				r.problem(ResourceNotKnown, err.Error())
			}
		}
	}
}

// label returns the first of the labels that is set and not empty.
func (r *gpuReading) label(keys ...string) string {
	for _, key := range keys {
		if value := r.node.Labels[key]; value != "" {
			return value
		}
	}
	return ""
}

// number reads a label that counts; what is none is a problem.
func (r *gpuReading) number(key string) (int64, bool) {
	text, set := r.node.Labels[key]
	if !set {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		r.problem(LabelUnreadable, key+"="+text+" is no count")
		return 0, false
	}
	if most := mostOf(key); n > most && !slices.Contains(cardCounts, key) {
		r.problem(LabelUnreadable, fmt.Sprintf("%s=%d: want at most %d", key, n, most))
		return 0, false
	}
	return n, true
}

// readProduct finds the model. Labels that a program read from the driver go before those that a cloud chose.
func (r *gpuReading) readProduct() {
	model := r.label(labelProduct)
	if cut := strings.Index(model, "-MIG-"); cut >= 0 {
		model = model[:cut]
	}
	model = strings.TrimSuffix(model, "-SHARED")
	if model == "" {
		model = hamiModel(r.node)
	}
	if model == "" {
		model = r.label(labelACKName, "gpu.nvidia.com/model", "karpenter.k8s.aws/instance-gpu-name", labelGKEAccelerator, "amd.com/gpu.product-name")
	}
	if model != "" {
		r.gpus.Product = &model
		r.product, r.productKnown = gpuinfo.ProductOf(model)
	}
}

// readCards takes the number of cards from labels that count cards, and the memory of one.
func (r *gpuReading) readCards() {
	for _, key := range cardCounts {
		if key == labelCount && strings.Contains(r.label(labelProduct), "-MIG-") {
			continue // there it counts MIG devices
		}
		switch n, ok := r.number(key); {
		case !ok || n == 0:
		case n > mostCards:
			r.problem(LabelUnreadable, fmt.Sprintf("%s=%d: want at most %d cards", key, n, mostCards))
		default:
			r.cards(n)
		}
		if r.gpus.Cards != nil {
			break
		}
	}
	if n := r.gpus.Units[gpuinfo.AliyunCount]; r.gpus.Cards == nil && n > 0 {
		r.cards(n)
	}
	if r.gpus.Cards == nil {
		r.intelCards()
	}
	if memory, ok := memoryText(r.label(labelACKMemory)); ok {
		r.gpus.CardMemoryMiB = &memory
	}
	if memory, ok := r.number("karpenter.k8s.aws/instance-gpu-memory"); ok && memory > 0 {
		r.gpus.CardMemoryMiB = &memory
	}
}

// cards takes a number of cards, and none that no machine has.
func (r *gpuReading) cards(n int64) {
	if n >= 0 && n <= mostCards {
		r.gpus.Cards = &n
	}
}

// intelCards adds up feature discovery's counts by PCI device.
func (r *gpuReading) intelCards() {
	var sum int64
	for _, key := range slices.Sorted(maps.Keys(r.node.Labels)) {
		if strings.HasPrefix(key, "gpu.intel.com/device-id.") && strings.HasSuffix(key, ".count") {
			n, _ := r.number(key)
			sum += n
		}
	}
	if sum > 0 {
		r.cards(sum)
	}
}

// memory notes what is behind one unit of a resource.
func (r *gpuReading) memory(resource string, mib int64) {
	if mib <= 0 {
		return
	}
	if r.gpus.MemoryMiB == nil {
		r.gpus.MemoryMiB = map[string]int64{}
	}
	r.gpus.MemoryMiB[resource] = mib
}

// gfdMemory is the label gpu.memory, in MiB. A feature discovery of 2022 wrote bytes; no device has ten million MiB.
func (r *gpuReading) gfdMemory() (int64, bool) {
	const mostMiB = 10_000_000
	n, ok := r.number(labelMemory)
	if n > mostMiB {
		n >>= 20
	}
	return n, ok && n > 0
}

// announced are the device resources with units, healthy or not, sorted.
func (r *gpuReading) announced() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.devices)), func(name string) bool { return r.devices[name] == 0 })
}
