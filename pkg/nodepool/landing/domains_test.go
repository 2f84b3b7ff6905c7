package landing_test

import (
	"fmt"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// racks returns four nodes with a GPU of each rack, and on the first ones of a rack so many that are full. A pod of the
// group is on the last full node of a rack with a negative number.
func racks(full ...int) (nodes []landing.Node) {
	for r, n := range full {
		for i := range 4 {
			host := inPool(fmt.Sprint("p", r), node(fmt.Sprintf("r%d-%d", r, i), announces("nvidia.com/gpu", 1), labelled("rack", fmt.Sprint("r", r))))
			if host.Use = (&landing.Use{Requests: landing.Quantities{}}); i < max(n, -n) {
				host.Use.Requests = asks("nvidia.com/gpu", 1).Requests
				host.Use.Pods = []*landing.Neighbors{{Namespace: "ml", Labels: map[string]string{"ray.io/group": map[bool]string{true: "racks", false: "other"}[n < 0]}}}
			}
			nodes = append(nodes, host)
		}
	}
	return nodes
}

func TestRoomForReplicasIsWholeDomains(t *testing.T) {
	known := func(may int64, pools ...string) (rooms []landing.Room) {
		for _, pool := range pools {
			rooms = append(rooms, landing.Room{Pool: pool, Nodes: 4, MayAddNodes: &may})
		}
		return rooms
	}
	declared := func(pool, rack string) landing.Node {
		shape := node(pool, announces("nvidia.com/gpu", 1))
		if shape.Declared = true; rack != "" {
			shape.Labels["rack"] = rack
		}
		return shape
	}
	unlabelled := inPool("p0", node("new", announces("nvidia.com/gpu", 1)))
	const three, shared = 3, "cloud.google.com/gke-nodepool"
	for name, c := range map[string]struct {
		key        string
		nodes      []landing.Node
		rooms      []landing.Room
		shapes     []landing.Node
		hosts      int64
		together   bool // replicas may share a rack
		want, rest int64
	}{
		"two whole racks":                      {nodes: racks(0, 1), rooms: known(0, "p0", "p1"), hosts: three, want: 6, rest: 7},
		"one of two":                           {nodes: racks(0, 2), rooms: known(0, "p0", "p1"), hosts: three, want: 3, rest: 6},
		"half of each is no rack":              {nodes: racks(2, 2), rooms: known(0, "p0", "p1"), hosts: three, want: 0, rest: 4},
		"another replica is there":             {nodes: racks(-1, 0), rooms: known(0, "p0", "p1"), hosts: three, want: 3, rest: 7},
		"two replicas keep apart":              {nodes: racks(0), rooms: known(0, "p0"), hosts: 2, want: 2, rest: 4},
		"two replicas in one rack":             {nodes: racks(0), rooms: known(0, "p0"), hosts: 2, together: true, want: 4, rest: 4},
		"a node without the label":             {nodes: append(racks(2), unlabelled), rooms: known(0, "p0"), hosts: three, want: 0, rest: 3},
		"its pool completes the rack":          {nodes: racks(2), rooms: known(1, "p0"), hosts: three, want: 3, rest: 3},
		"its pool adds too few":                {nodes: racks(3), rooms: known(1, "p0"), hosts: three, want: 0, rest: 2},
		"a pool of any rack":                   {nodes: append(racks(2), inPool("p0", racks(0, 4)[7])), rooms: known(1, "p0"), hosts: three, want: 3, rest: 3},
		"pools from zero":                      {rooms: known(4, "p0", "p1"), shapes: []landing.Node{declared("p0", "r0"), declared("p1", "r1")}, hosts: three, want: 6, rest: 8},
		"pools from zero that are too small":   {rooms: known(2, "p0", "p1"), shapes: []landing.Node{declared("p0", "r0"), declared("p1", "r1")}, hosts: three, want: 0, rest: 4},
		"two pools of one rack":                {rooms: known(2, "p0", "p1"), shapes: []landing.Node{declared("p0", "r0"), declared("p1", "r0")}, hosts: three, want: 3, rest: 4},
		"a pool without the label":             {rooms: known(4, "p0", "p1"), shapes: []landing.Node{declared("p0", "r0"), declared("p1", "")}, hosts: three, want: 8, rest: 8},
		"a rack is a pool":                     {key: shared, rooms: known(4, "p0", "p1"), shapes: []landing.Node{declared("p0", ""), declared("p1", "")}, hosts: three, want: 6, rest: 8},
		"a pool of a rack, of unknown size":    {rooms: []landing.Room{{Pool: "p0"}}, shapes: []landing.Node{declared("p0", "r0")}, hosts: three, want: 3, rest: landing.Unbounded},
		"racks of a pool that may add no node": {nodes: append(racks(1), racks(0, 2)[4:]...), rooms: known(0, "p0", "p1"), hosts: three, want: 3, rest: 5},
	} {
		t.Run(name, func(t *testing.T) {
			stock := landing.NodesOf(c.nodes, landing.Pools{Rooms: c.rooms, Shapes: c.shapes})
			own, other := asks("nvidia.com/gpu", 1), asks("nvidia.com/gpu", 1)
			own.Neighbors = landing.Neighbors{Namespace: "ml", Labels: map[string]string{"ray.io/group": "racks"},
				Domain: landing.ReplicaDomain{Key: "rack", Hosts: c.hosts, Alone: []landing.PodTerm{{Selector: selecting("ray.io/group", "racks")}}}}
			if c.key != "" {
				own.Neighbors.Domain.Key = c.key
			}
			if c.together {
				own.Neighbors.Domain.Alone = nil
			}
			places, pods := stock.Places([]landing.Kind{stock.KindOf("racks", &own), stock.KindOf("other", &other)})
			on := landing.New(pods, places).Empty()
			if got, rest := on.Room(0), on.Room(1); got != c.want || rest != c.rest {
				t.Errorf("room for %d pods of replicas and %d others, want %d and %d", got, rest, c.want, c.rest)
			}
		})
	}
}
