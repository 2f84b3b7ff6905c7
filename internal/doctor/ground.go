package doctor

import (
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
)

// ground is what pods can land on, found out once for all groups: a check that walks every node for every group takes minutes over a fleet.
type ground struct {
	// nodes are as landing sees them, with what is understood of their GPUs; byName are those of the input.
	nodes  []podfit.Node
	byName map[string]*examNode
	// lots sort the nodes, and the shapes of pools that could get one, by what pods see of them.
	lots  *podfit.Classes
	rooms []pools.Room
	// places of each worker group and obstacles in its way, as far as somebody asked.
	places    map[*nodepool.WorkerGroup][]podfit.Node
	obstacles map[*nodepool.WorkerGroup]obstacle
}

// obstacle is what alone keeps a group off the node that is nearest.
type obstacle struct {
	taints []nodegpu.Taint
	node   string
}

func (x *exam) survey() {
	g := &x.ground
	g.byName = make(map[string]*examNode, len(x.nodes))
	g.places, g.obstacles = map[*nodepool.WorkerGroup][]podfit.Node{}, map[*nodepool.WorkerGroup]obstacle{}
	g.nodes = make([]podfit.Node, len(x.nodes))
	for i := range x.nodes {
		n := &x.nodes[i]
		g.byName[n.Name] = n
		g.nodes[i] = n.Node.Landing
		if g.nodes[i].GPUs == nil {
			g.nodes[i].GPUs = &n.gpus
		}
	}
	shapes := x.input.Pools.Shapes(x.input.Reader)
	g.lots = podfit.ClassesOf(g.nodes, func(i int) podfit.NodeClass { return podfit.ClassOf(&g.nodes[i]) }, shapes)
	g.rooms = pools.Rooms(g.nodes, x.input.Pools, x.ceilings())
	g.nodes = append(g.nodes, shapes...)
}

// placesFor are the nodes and declared shapes against which a worker group is to be held: of those that are the same to it, the first.
func (x *exam) placesFor(g group) []podfit.Node {
	places, known := x.ground.places[g.workers]
	if !known {
		places = x.ground.lots.For(&g.workers.Pod)
		x.ground.places[g.workers] = places
	}
	return places
}

// examNodes are the nodes behind places; declared shapes are none.
func (x *exam) examNodes(places []podfit.Node, visit func(*examNode) (goOn bool)) {
	for i := range places {
		if places[i].Declared {
			continue
		}
		if !visit(x.ground.byName[places[i].Name]) {
			return
		}
	}
}
