// Package sharing knows the ways in which GPUs are handed out, one file for each stack: what a node of the stack says,
// what a pod asks for, which pods hold what of its cards, and what proves it. Reader reads a NodeObject with one list
// of readers, one for each stack; the result is a GPUs: the product and number of the cards, how they are shared, what
// pods can request, what is free, and what is wrong. What the node does not prove is left out. RequestOf reads what a
// pod asks of single cards: a Request.
//
// To add a stack, add the names of its resources to gpuinfo/resource.go, and write a file here; koordinator.go is a
// short example. If nodes have marks of the stack, the file has a row in claims; if it shows single cards, one in
// cardSources; if it hands out parts of cards, one in requests, besides and GPUs.Parts. Annotations that it reads are
// in ReadsAnnotation for nodes and in PodAnnotations for pods. Which part of the node a pod pays for is in
// price/share.go.
//
// The package must not know pools, clusters or where pods go, and it must not use files, clients or the clock.
// Heliostat's agent publishes what the driver reports in the node annotation heliostat.dev/gpus, as an AgentReport.
package sharing

import (
	"slices"
	"strings"

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
