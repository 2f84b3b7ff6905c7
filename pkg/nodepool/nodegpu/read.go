// Package nodegpu says what a node's GPUs are: the product and number of its cards, how they are handed out, what pods
// can ask for, what is free, and what is wrong with them. Reader reads a NodeObject by one list of readers, one for
// each way of handing out GPUs; the result is a GPUs. What the node does not prove is left out.
//
// It must not look at pods that search for a node, at pools or at clusters, and it must not reach outside: it reads
// what it is given. Heliostat's agent publishes what the driver sees in the node annotation heliostat.dev/gpus, as an
// AgentReport.
package nodegpu

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// Annotations are the annotations of nodes that are read; the labels are all kept.
func Annotations() []string {
	keys := []string{hamiRegister, hamiHandshake, volcanoRegister, AgentAnnotation}
	for _, row := range PoolLabels {
		keys = append(keys, row.Key)
	}
	return keys
}

// Read says what is understood of one node.
func (g Reader) Read(node NodeObject) GPUs {
	r := &reading{node: node, names: g.Names, at: g.At, gpus: GPUs{
		Name: node.Name, Kind: gpuinfo.UnknownKind, Isolation: gpuinfo.UnknownIsolation, Problems: []Problem{},
	}}
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
	r.readFree()
	r.readWell()
	r.readProblems()
	return r.gpus
}

// claims are the ways in which GPUs are handed out, each with the marks it leaves on a node. The first that recognises
// the node decides: what makes everything else untrue stands first, then what leaves marks of its own, then what shares
// the name nvidia.com/gpu, and whole cards last, for they leave none.
var claims = []struct {
	name string
	read func(*reading) bool
}{
	{"a change of MIG layout is under way: nothing is to be trusted", (*reading).readMIGChange},
	{"single strategy without one common profile: nothing is announced", (*reading).readMIGInvalid},
	{"devices of ResourceSlices where no resource announces any", (*reading).readDRA},
	{"HAMi's annotation, or its label with more units than cards", (*reading).readHAMi},
	{"Volcano's vgpu resources", (*reading).readVolcano},
	{"aliyun.com/gpu-mem", (*reading).readGPUMemory},
	{"nvidia.com/mig-* in resources or labels", (*reading).readMIGMixed},
	{"GKE's labels for sharing and partitions", (*reading).readGKE},
	{"labels of feature discovery with values that nobody knows", (*reading).readOdd},
	{"feature discovery's labels for sharing", (*reading).readSharing},
	{"feature discovery's labels for the single strategy", (*reading).readMIGSingle},
	{"devices under a configured name of known kind", (*reading).readConfigured},
	{"cards", (*reading).readWhole},
}
