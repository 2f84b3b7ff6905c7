package fleet

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/chaos/verdict"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

// The worker groups. Each kind of work fits only one of them, and fills a whole worker.
const (
	CPUGroup = "cpu"
	GPUGroup = "gpu"
	// MaxReplicas is the maximum of each group.
	MaxReplicas = 4
	// IdleSeconds is the idle timeout.
	IdleSeconds = 3
)

// Groups are the names of the worker groups.
var Groups = []string{CPUGroup, GPUGroup}

// bundles is what a worker of a group has, and what a task for it asks for.
var bundles = map[string]raydemand.Bundle{
	CPUGroup: {raydemand.CPU: raydemand.One},
	GPUGroup: {raydemand.GPU: raydemand.One},
}

// Member is one RayCluster with its simulated head.
type Member struct {
	Name   string
	Head   *simray.Head
	ip     string
	shadow bool
	see    func(verdict.Fact)

	mu   sync.Mutex // guards held
	held []simray.WorkID
}

// newMember starts a head at an address.
func newMember(name, ip string, shadow bool, see func(verdict.Fact)) (*Member, error) {
	head, err := simray.Start(
		simray.Options{Address: ip + ":6379", Head: simray.Node{Instance: name + "-head", IP: ip}})
	if err != nil {
		return nil, fmt.Errorf("starting the head of %s: %w", name, err)
	}
	m := &Member{Name: name, Head: head, ip: ip, shadow: shadow, see: see}
	m.SetFault(simray.Fault{})
	return m, nil
}

// manifest describes the RayCluster.
func (m *Member) manifest(namespace string) rig.Cluster {
	c := rig.Cluster{Namespace: namespace, Name: m.Name, IdleSeconds: IdleSeconds,
		HeadNodes: map[string]string{machineLabel: headMachine},
		Groups: []rig.Group{
			{Name: CPUGroup, Max: MaxReplicas, NodeSelector: map[string]string{machineLabel: workerMachine}},
			{Name: GPUGroup, Max: MaxReplicas, Params: map[string]string{"num-cpus": "0"},
				Devices:      map[string]int64{"nvidia.com/gpu": 1},
				NodeSelector: map[string]string{machineLabel: workerMachine}},
		}}
	if m.shadow {
		c.Annotations = map[string]string{"heliostat.dev/mode": "shadow"}
	}
	return c
}

// SetFault sets the fault of all calls of the head. What it answers is still reported.
func (m *Member) SetFault(fault simray.Fault) {
	m.Head.SetFault("", fault)
	lie := fault.Lie
	fault.Lie = func(state *autoscalerpb.ClusterResourceState) {
		if lie != nil {
			lie(state)
		}
		m.see(answer(m.Name, state))
	}
	m.Head.SetFault("GetClusterResourceState", fault)
}

// Work submits some random work that ends by itself: tasks, actors, and placement groups.
func (m *Member) Work(random *rand.Rand) {
	if counts := m.Head.Counts(); counts.Waiting+counts.Running > 3*MaxReplicas {
		return
	}
	group, runs := Groups[random.IntN(len(Groups))], 2*time.Second+time.Duration(random.Int64N(int64(8*time.Second)))
	if random.IntN(6) == 0 {
		two := []raydemand.Bundle{bundles[group], bundles[group]}
		m.Head.SubmitGang(simray.Gang{Strategy: raydemand.StrictSpread, Bundles: two, Runs: runs})
		return
	}
	for range 1 + random.IntN(3) {
		m.Head.Submit(simray.Task{Bundle: bundles[group], Runs: runs, Actor: random.IntN(5) == 0})
	}
}

// Hold submits work that runs until Release.
func (m *Member) Hold(random *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, group := range Groups {
		for range random.IntN(MaxReplicas + 2) {
			m.held = append(m.held, m.Head.Submit(simray.Task{Bundle: bundles[group]}))
		}
	}
}

// Worked reports whether no work runs that ends by itself. Such work may still wait, behind held work, for good.
func (m *Member) Worked() bool { return m.Head.Counts().Ending == 0 }

// Release ends the work of Hold.
func (m *Member) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.held {
		m.Head.Cancel(id)
	}
	m.held = nil
}

// groupOf returns the group that a request is for.
func groupOf(resources map[string]float64) string {
	if resources["GPU"] > 0 {
		return GPUGroup
	}
	return CPUGroup
}

// answer returns what a judge needs of an answer.
func answer(cluster string, state *autoscalerpb.ClusterResourceState) verdict.Answer {
	demand, _ := waiting(state)
	a := verdict.Answer{At: time.Now(), Cluster: cluster, Demand: demand, Alive: map[string]int64{}}
	for _, worker := range workers(state) {
		a.Alive[worker.Group]++
		if worker.Busy {
			a.Demand[worker.Group]++
		}
	}
	return a
}

// waiting counts the work without a place in a state, by group, and the smallest part that is placed as a whole.
func waiting(state *autoscalerpb.ClusterResourceState) (counts, smallest map[string]int64) {
	counts, smallest = map[string]int64{}, map[string]int64{}
	for _, request := range state.GetPendingResourceRequests() {
		group := groupOf(request.GetRequest().GetResourcesBundle())
		counts[group] += min(max(request.GetCount(), 0), 1<<30)
		smallest[group] = 1
	}
	for _, gang := range state.GetPendingGangResourceRequests() {
		size := int64(len(gang.GetRequests()))
		for _, request := range gang.GetRequests() {
			group := groupOf(request.GetResourcesBundle())
			counts[group]++
			if smallest[group] == 0 || smallest[group] > size {
				smallest[group] = size
			}
		}
	}
	return counts, smallest
}

// uses reports whether work uses a resource of a node.
func uses(node *autoscalerpb.NodeState, resource string) bool {
	return node.GetAvailableResources()[resource] < node.GetTotalResources()[resource]
}

// workers returns the living workers of a state, by pod.
func workers(state *autoscalerpb.ClusterResourceState) map[string]verdict.Worker {
	living := map[string]verdict.Worker{}
	for _, node := range state.GetNodeStates() {
		if node.GetStatus() == autoscalerpb.NodeStatus_DEAD || strings.HasPrefix(node.GetRayNodeTypeName(), "head") {
			continue
		}
		living[node.GetInstanceId()] = verdict.Worker{
			Group:    node.GetRayNodeTypeName(),
			Busy:     uses(node, "CPU") || uses(node, "GPU"),
			Draining: node.GetStatus() == autoscalerpb.NodeStatus_DRAINING,
		}
	}
	return living
}
