package consolidation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// scene is a RayCluster with workers of 4 CPUs in group cpu, of which each actor holds one.
type scene struct {
	cluster   nodepool.Cluster
	nodes     []raydemand.Node
	residents []raydemand.Resident
}

func newScene(workers int) *scene {
	price := 3.1
	s := &scene{cluster: nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, IdleTimeout: time.Minute,
		Groups: []nodepool.WorkerGroup{{Name: "cpu", Resources: cpus(4), Replicas: workers, Max: 9, NumOfHosts: 1, Price: &price}}}}
	for i := range workers {
		pod := fmt.Sprintf("w%d", i)
		s.cluster.Workers = append(s.cluster.Workers, nodepool.Worker{Pod: pod, UID: pod, Group: "cpu"})
		s.nodes = append(s.nodes, raydemand.Node{ID: idOf(pod), Instance: pod, Group: "cpu", Status: raydemand.Idle,
			Idle: time.Second, Total: cpus(4), Available: cpus(4)})
	}
	return s
}

func idOf(pod string) (id raydemand.NodeID) {
	copy(id[:], pod)
	return id
}

func cpus(n int64) raydemand.Bundle { return raydemand.Bundle{raydemand.CPU: raydemand.Whole(n)} }

func replica() raydemand.Resident {
	return raydemand.Resident{Name: "SERVE_REPLICA::app#D#x", Class: "ServeReplica:app:D", Namespace: "serve", Alive: true, Resources: cpus(1)}
}

func actor(restarts int64) raydemand.Resident {
	return raydemand.Resident{Class: "Trainer", Alive: true, Resources: cpus(1), Restarts: restarts}
}

// put places actors on a worker.
func (s *scene) put(pod string, actors ...raydemand.Resident) {
	n := s.node(pod)
	n.Status, n.Idle, n.Activity = raydemand.Running, 0, []string{raydemand.ActiveWorkers, "Resource: CPU currently in use."}
	for _, a := range actors {
		a.Node = n.ID
		n.Available.Take(a.Resources)
		s.residents = append(s.residents, a)
	}
}

// copies puts primary copies of objects into the object store of a worker, which has 80 MB.
func (s *scene) copies(pod string, bytes int64) {
	n := s.node(pod)
	n.Total[raydemand.ObjectStoreMemory] = raydemand.Whole(80_000_000)
	n.Available[raydemand.ObjectStoreMemory] = raydemand.Whole(80_000_000 - bytes)
	n.Activity = append(n.Activity, "Resource: object_store_memory currently in use.")
}

func (s *scene) node(pod string) *raydemand.Node {
	return &s.nodes[slices.IndexFunc(s.nodes, func(n raydemand.Node) bool { return n.Instance == pod })]
}

func (s *scene) input() Input {
	v := &observe.View{Now: noon, Cluster: s.cluster, Members: observe.Join(s.cluster, s.nodes)}
	snapshot := observe.Assemble(observe.SnapshotInput{Now: noon, Cluster: s.cluster, Members: v.Members})
	plan := planner.Compute(snapshot, planner.Policy{})
	return Input{View: v, Snapshot: &snapshot, Plan: &plan, Residents: s.residents}
}

func (s *scene) moves() []Move { return Moves(s.input()) }

func podsOf(moves []Move) string {
	var pods []string
	for i := range moves {
		pods = append(pods, fmt.Sprintf("%s %s", moves[i].Pod, moves[i].Needs))
	}
	return strings.Join(pods, ", ")
}

func TestWhatMayMove(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *scene)
		want   string
	}{
		"a Serve replica that fits on a worker in use": {want: "w0 serve, w1 serve"},
		"a proxy of Serve beside it": {
			change: func(s *scene) {
				s.put("w0", raydemand.Resident{Name: "SERVE_PROXY_ACTOR-1", Class: "ProxyActor", Namespace: "serve", Alive: true})
			},
			want: "w0 serve, w1 serve",
		},
		"an actor that Ray restarts": {change: func(s *scene) { s.put("w0", actor(raydemand.RestartsAlways)) }, want: "w1 serve, w0 restartable"},
		"an actor without restarts":  {change: func(s *scene) { s.put("w0", actor(0)) }, want: "w1 serve"},
		"a task":                     {change: func(s *scene) { s.node("w0").Available.Take(cpus(1)) }, want: "w1 serve"},
		"an actor in a placement group": {
			change: func(s *scene) { s.residents[0].Grouped = true }, want: "w1 serve"},
		"an actor that has started others": {
			change: func(s *scene) { s.residents[0].Owns = true }, want: "w1 serve"},
		"a bundle of a placement group": {
			change: func(s *scene) { s.node("w0").PlacedLabels = map[string]string{"_PG_1": ""} }, want: "w1 serve"},
		"the few copies of objects of a replica": {change: func(s *scene) { s.copies("w0", 100_000) }, want: "w0 serve, w1 serve"},
		"more copies of objects":                 {change: func(s *scene) { s.copies("w0", 1_000_000) }, want: "w1 serve"},
		"few copies beside a restartable actor": {
			change: func(s *scene) { s.put("w0", actor(1)); s.copies("w0", 100_000) }, want: "w1 serve"},
		"a cause that no known Ray reports": {change: func(s *scene) { s.node("w0").Activity = append(s.node("w0").Activity, "Something new.") }, want: "w1 serve"},
		"an actor that is being created":    {change: func(s *scene) { s.residents[0].Alive = false }, want: "w1 serve"},
		"a selector that cannot be read":    {change: func(s *scene) { s.residents[0].SelectorUnknown = true }, want: "w1 serve"},
		"a selector that no other worker has": {
			change: func(s *scene) {
				s.residents[0].Selector = raydemand.NewSelector(raydemand.Constraint{Key: "zone", Op: raydemand.In, Values: []string{"a"}})
			},
			want: "w1 serve"},
		"a user's actor with the name of a replica": {change: func(s *scene) { s.residents[0].Namespace = "mine" }, want: "w1 serve"},
		"a worker that is draining":                 {change: func(s *scene) { s.node("w0").Status = raydemand.Draining }, want: ""},
		"a pod that the user guards":                {change: func(s *scene) { s.cluster.Workers[0].Guard.DoNotDisrupt = nodepool.MarkedByUser }, want: "w1 serve"},
		"a group at its minimum":                    {change: func(s *scene) { s.cluster.Groups[0].Min = 2 }, want: ""},
		"a multi-host group":                        {change: func(s *scene) { s.cluster.Groups[0].NumOfHosts = 2 }, want: ""},
		"no room on workers in use":                 {change: func(s *scene) { s.put("w1", actor(0), actor(0), actor(0)) }, want: ""},
		"most of a worker": {
			change: func(s *scene) { s.put("w0", replica(), replica()) }, want: "w1 serve"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(2)
			s.put("w0", replica())
			s.put("w1", replica())
			if c.change != nil {
				c.change(s)
			}
			if got := podsOf(s.moves()); got != c.want {
				t.Errorf("moves are %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnIdleWorkerIsNoPlace(t *testing.T) {
	s := newScene(2)
	s.put("w0", replica())
	if got := s.moves(); len(got) > 0 {
		t.Errorf("moves are %v, want none: the idle worker leaves by itself", got)
	}
}

func TestTheMoveHasItsPrice(t *testing.T) {
	s := newScene(2)
	s.put("w0", replica())
	s.put("w1", replica())
	move := s.moves()[0]
	if move.Hourly != 3.1 || move.Again != 6*time.Minute || !move.Pays() {
		t.Errorf("move %+v, want 3.1 per hour, paid for nothing for the idle minute and five to start", move)
	}
	want := "worker w0 is used to 25 %: its work (replicas of Serve: 1, restartable actors: 0) fits on the other workers in use; without it, the RayCluster costs 3.10 USD per hour less"
	if got := move.Text("USD"); got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	s.cluster.Groups[0].Price = nil
	if move := s.moves()[0]; move.Hourly > 0 || move.Pays() {
		t.Errorf("without a price: %+v", move)
	}
}

// TestRandomScenes moves the first worker again and again, as Ray would, until nothing is left to move. What a move
// needs must fit on the workers in use at every step, and nothing that cannot move may be on the worker.
func TestRandomScenes(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := newScene(2 + random.IntN(4))
		pinned := map[raydemand.NodeID]bool{}
		for i := range s.nodes {
			for range random.IntN(5) {
				switch a := actor(0); random.IntN(4) {
				case 0:
					pinned[s.nodes[i].ID] = true
					s.put(s.nodes[i].Instance, a)
				case 1:
					s.put(s.nodes[i].Instance, actor(2))
				default:
					s.put(s.nodes[i].Instance, replica())
				}
			}
		}
		for step := 0; ; step++ {
			moves := s.moves()
			if len(moves) == 0 {
				break
			}
			if again := s.moves(); podsOf(again) != podsOf(moves) {
				t.Fatalf("seed %d: %s, and then %s", seed, podsOf(moves), podsOf(again))
			}
			for _, move := range moves {
				if pinned[move.Node.ID] || move.Used > mostUse {
					t.Fatalf("seed %d: %+v has work that cannot move, or much", seed, move)
				}
			}
			if step > 10 || !s.carryOut(moves[0].Pod) {
				t.Fatalf("seed %d: the work of %s has no place in step %d", seed, moves[0].Pod, step)
			}
		}
	}
}

// carryOut moves the actors of a worker to others in use, and removes it.
func (s *scene) carryOut(pod string) bool {
	gone := s.node(pod).ID
	s.nodes = slices.DeleteFunc(s.nodes, func(n raydemand.Node) bool { return n.ID == gone })
	s.cluster.Workers = slices.DeleteFunc(s.cluster.Workers, func(w nodepool.Worker) bool { return w.Pod == pod })
	s.cluster.Groups[0].Replicas--
	for i := range s.residents {
		r := &s.residents[i]
		if r.Node != gone {
			continue
		}
		at := slices.IndexFunc(s.nodes, func(n raydemand.Node) bool {
			return n.Status == raydemand.Running && n.Available.Fits(r.Resources)
		})
		if at < 0 {
			return false
		}
		r.Node = s.nodes[at].ID
		s.nodes[at].Available.Take(r.Resources)
	}
	return true
}
