package giveback

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fleet is a RayCluster whose workers have GPUs and work.
type fleet struct {
	in   Input
	used map[raydemand.NodeID]time.Duration
}

func newFleet() *fleet {
	f := &fleet{used: map[raydemand.NodeID]time.Duration{}}
	f.in = Input{View: &observe.View{Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}, Snapshot: &planner.Snapshot{},
		UsedFor: func(id raydemand.NodeID) time.Duration { return f.used[id] },
		Settled: func(m observe.Member) bool { return f.used[m.Node.ID] >= observe.PlacedShown }}
	return f
}

// group adds a group whose workers have so many GPUs and as many CPUs.
func (f *fleet) group(name string, gpus int64, least int) {
	shape := raydemand.Bundle{raydemand.GPU: raydemand.Whole(gpus), raydemand.CPU: raydemand.Whole(gpus)}
	f.in.View.Cluster.Groups = append(f.in.View.Cluster.Groups, nodepool.WorkerGroup{Name: name, Resources: shape,
		Min: least, Max: 100, NumOfHosts: 1})
	f.in.Snapshot.Groups = append(f.in.Snapshot.Groups, planner.Group{Name: name, Resources: shape, Max: 100, NumOfHosts: 1})
}

// worker adds a worker that has been in use for so long; 0 is idle.
func (f *fleet) worker(pod, group string, used time.Duration) *observe.Member {
	g, _ := f.in.View.Cluster.Group(group)
	g.Replicas++
	n := raydemand.Node{Status: raydemand.Running, Total: g.Resources.Clone(), Available: raydemand.Bundle{},
		Activity: []string{raydemand.ActiveWorkers}}
	copy(n.ID[:], pod)
	if f.used[n.ID] = used; used == 0 {
		n.Status, n.Available, n.Activity, f.used[n.ID] = raydemand.Idle, n.Total.Clone(), nil, time.Hour
	}
	f.in.View.Members = append(f.in.View.Members, observe.Member{Node: &n,
		Worker: &nodepool.Worker{Pod: pod, UID: pod, Group: group, Pool: "pool-" + group}})
	f.in.Snapshot.Nodes = append(f.in.Snapshot.Nodes, planner.Node{Pod: pod, Group: group, State: planner.Running,
		Total: n.Total, Available: n.Available, KubeNode: "node-" + pod})
	return &f.in.View.Members[len(f.in.View.Members)-1]
}

// leaves lets Ray drain the worker that was added last, or its machine go.
func (f *fleet) leaves(going *departure.Notice) {
	m := &f.in.View.Members[len(f.in.View.Members)-1]
	at := &f.in.Snapshot.Nodes[len(f.in.Snapshot.Nodes)-1]
	if at.State, at.Going, m.Going = planner.Leaving, going, going; going == nil {
		m.Node.Status = raydemand.Draining
	}
}

// serves makes the worker one that only a replica of Serve uses, with one GPU.
func (f *fleet) serves(pod, group string) {
	m := f.worker(pod, group, time.Hour)
	f.in.Residents = append(f.in.Residents, raydemand.Resident{Name: "SERVE_REPLICA::a#D#x", Class: "ServeReplica:a:D",
		Namespace: "serve", Alive: true, Node: m.Node.ID, Resources: raydemand.Bundle{raydemand.GPU: raydemand.One}})
	m.Node.Available = m.Node.Total.Clone()
	m.Node.Available.Take(raydemand.Bundle{raydemand.GPU: raydemand.One})
	at := &f.in.Snapshot.Nodes[len(f.in.Snapshot.Nodes)-1]
	at.Available = m.Node.Available
}

func TestTheWorkersWhoseLossCostsLeastAreChosen(t *testing.T) {
	for name, c := range map[string]struct {
		make func(*fleet)
		ask  giveback.Ask
		want string // the pods, or what the refusal says
	}{
		"idle before busy": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", time.Hour)
			f.worker("b", "h", 0)
		}, giveback.Ask{GPUs: 1, Group: "h", Force: true}, "b"},
		"none on which work may just be placed": {func(f *fleet) {
			f.group("h", 1, 0)
			f.used[f.worker("a", "h", 0).Node.ID] = observe.PlacedShown - 1
		}, giveback.Ask{GPUs: 1, Group: "h"}, "a: idle for less than 3s, so work may just be placed there"},
		"what has worked least": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", 3*time.Hour)
			f.worker("b", "h", time.Hour)
			f.worker("c", "h", 2*time.Hour)
		}, giveback.Ask{GPUs: 2, Group: "h", Force: true}, "b c"},
		"no gang if there is another choice": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", time.Minute).Node.PlacedLabels = map[string]string{"_PG_1": ""}
			f.worker("b", "h", time.Hour)
		}, giveback.Ask{GPUs: 1, Group: "h", Force: true}, "b"},
		"a gang if there is no other": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", time.Minute).Node.PlacedLabels = map[string]string{"_PG_1": ""}
			f.worker("b", "h", time.Hour)
		}, giveback.Ask{GPUs: 2, Group: "h", Force: true}, "b a"},
		"what Serve moves before tasks": {func(f *fleet) {
			f.group("h", 2, 0)
			f.worker("a", "h", time.Minute)
			f.serves("b", "h")
			f.serves("c", "h")
		}, giveback.Ask{GPUs: 2, Group: "h"}, "b"},
		"replicas that have no room elsewhere stay": {func(f *fleet) {
			f.group("h", 1, 0)
			f.serves("a", "h")
			f.serves("b", "h")
		}, giveback.Ask{GPUs: 1, Group: "h"}, "nothing else has room"},
		"exactly as many, even if a dearer one goes": {func(f *fleet) {
			f.group("four", 4, 0)
			f.group("two", 2, 0)
			f.worker("a", "four", 0)
			f.worker("b", "two", time.Hour)
			for _, m := range f.in.View.Members {
				m.Pool = "p"
			}
		}, giveback.Ask{GPUs: 2, Pool: "p", Force: true}, "b"},
		"the larger ones, if the cheaper ones do not add up": {func(f *fleet) {
			f.group("four", 4, 0)
			f.group("three", 3, 0)
			f.worker("a", "three", 0)
			f.worker("b", "four", time.Hour)
			f.worker("c", "four", time.Hour)
			for _, m := range f.in.View.Members {
				m.Pool = "p"
			}
		}, giveback.Ask{GPUs: 8, Pool: "p", Force: true}, "b c"},
		"no part of a worker": {func(f *fleet) {
			f.group("h", 8, 0)
			f.worker("a", "h", 0)
		}, giveback.Ask{GPUs: 4, Group: "h"}, "0 GPUs can, without ending work that cannot move"},
		"never below the minimum": {func(f *fleet) {
			f.group("h", 1, 1)
			f.worker("a", "h", 0)
		}, giveback.Ask{GPUs: 1, Group: "h", Force: true}, "lower minReplicas"},
		"only workers of the pool": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", 0)
			f.worker("b", "h", time.Hour).Pool = "other"
		}, giveback.Ask{GPUs: 1, Pool: "other", Force: true}, "b"},
		"an unknown group": {func(f *fleet) { f.group("h", 1, 0) }, giveback.Ask{GPUs: 1, Group: "x"}, `no group "x"; it has h`},
		"no GPUs": {func(f *fleet) {
			f.group("h", 0, 0)
			f.worker("a", "h", 0)
		}, giveback.Ask{GPUs: 1, Group: "h"}, "no worker of group h has whole GPUs"},
		"one that leaves anyway does not count": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", 0).Node.Status = raydemand.Draining
			f.worker("b", "h", 0)
		}, giveback.Ask{GPUs: 1, Group: "h"}, "b"},
		"one that its user protects": {func(f *fleet) {
			f.group("h", 2, 0)
			f.serves("a", "h")
			f.in.View.Members[0].Guard = nodepool.Guard{DoNotDisrupt: nodepool.MarkedByUser, SafeToEvict: nodepool.MarkedByUser}
			f.serves("b", "h")
			f.serves("c", "h")
		}, giveback.Ask{GPUs: 2, Group: "h"}, "b"},
		"an idle one that its user protects": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", 0).Guard = nodepool.Guard{DoNotDisrupt: nodepool.MarkedByUser}
		}, giveback.Ask{GPUs: 1, Group: "h"}, "with force all can (a: its user keeps it from being evicted)"},
		"one that its user protects, and Heliostat beside it": {func(f *fleet) {
			f.group("h", 2, 0)
			f.serves("a", "h")
			f.in.View.Members[0].Guard = nodepool.Guard{DoNotDisrupt: nodepool.MarkedByUs, SafeToEvict: nodepool.MarkedByUser}
			f.serves("b", "h")
			f.serves("c", "h")
		}, giveback.Ask{GPUs: 2, Group: "h"}, "b"},
		"a leaving one is part of the minimum": {func(f *fleet) {
			f.group("h", 1, 1)
			f.worker("a", "h", 0).Node.Status = raydemand.Draining
			f.worker("b", "h", 0)
			f.worker("c", "h", 0)
		}, giveback.Ask{GPUs: 2, Group: "h", Force: true}, "1 GPU can"},
		"a pod that waits for a node": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", 0)
			f.in.Snapshot.Nodes = append(f.in.Snapshot.Nodes, planner.Node{Pod: "b", Group: "h", State: planner.Pending})
		}, giveback.Ask{GPUs: 1, Group: "h"}, "1 pod without a node would take the GPUs"},
		"a pod without a node is no room": {func(f *fleet) {
			f.group("h", 1, 0)
			f.group("other", 1, 0)
			f.serves("a", "h")
			f.in.Snapshot.Nodes = append(f.in.Snapshot.Nodes, planner.Node{Pod: "b", Group: "other", State: planner.Pending})
		}, giveback.Ask{GPUs: 1, Group: "h"}, "a: 1 replicas of Serve and 0 actors move, but nothing else has room"},
		"a worker that has just joined is no room": {func(f *fleet) {
			f.group("h", 1, 0)
			f.group("g", 1, 0)
			f.serves("a", "h")
			f.used[f.worker("b", "g", 0).Node.ID] = observe.PlacedShown - 1
		}, giveback.Ask{GPUs: 1, Group: "h"}, "nothing else has room"},
		"a pod that does not exist yet is no room": {func(f *fleet) {
			f.group("h", 1, 0)
			f.group("other", 1, 0)
			f.serves("a", "h")
			f.in.Snapshot.Groups[1].Replicas = new(1)
		}, giveback.Ask{GPUs: 1, Group: "h"}, "nothing else has room"},
		"an idle worker of another group is room": {func(f *fleet) {
			f.group("h", 1, 0)
			f.group("other", 1, 0)
			f.serves("a", "h")
			f.worker("b", "other", 0)
		}, giveback.Ask{GPUs: 1, Group: "h"}, "a"},
		"an idle one while work leaves": {func(f *fleet) {
			f.group("h", 1, 0)
			f.serves("a", "h")
			f.leaves(nil)
			f.worker("b", "h", 0)
		}, giveback.Ask{GPUs: 1, Group: "h"}, "with force all can (b: it is idle, but work that leaves another worker may need its room)"},
		"an idle one while work leaves whose machine goes": {func(f *fleet) {
			f.group("h", 1, 0)
			f.serves("a", "h")
			f.leaves(departure.Of(departure.GKETermination, "soon"))
			f.worker("b", "h", 0)
		}, giveback.Ask{GPUs: 1, Group: "h"}, "work that leaves another worker may need its room"},
		"what moves comes after what leaves already": {func(f *fleet) {
			f.group("h", 1, 0)
			f.group("other", 1, 0)
			f.serves("a", "h")
			f.leaves(nil)
			f.serves("b", "h")
			f.worker("c", "other", 0)
		}, giveback.Ask{GPUs: 1, Group: "h"}, "b: 1 replicas of Serve and 0 actors move, but nothing else has room"},
		"one with more GPUs than its group": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", 0).Node.Total = raydemand.Bundle{raydemand.GPU: raydemand.Whole(8)}
		}, giveback.Ask{GPUs: 1, Group: "h", Force: true}, "has the GPUs of its group"},
		"one that has as many GPUs as its group": {func(f *fleet) {
			f.group("h", 2, 0)
			f.worker("a", "h", 0).Node.Total = raydemand.Bundle{raydemand.GPU: raydemand.One}
			f.worker("b", "h", 0)
		}, giveback.Ask{GPUs: 2, Group: "h"}, "b"},
		"a part of a GPU": {func(f *fleet) {
			f.group("h", 1, 0)
			f.in.Snapshot.Groups[0].Resources = raydemand.Bundle{raydemand.GPU: raydemand.One / 2}
		}, giveback.Ask{GPUs: 1, Group: "h"}, "only whole GPUs can be given back"},
		"as many replicas as have room elsewhere": {func(f *fleet) {
			f.group("h", 2, 0)
			f.serves("a", "h")
			f.serves("b", "h")
			f.serves("c", "h")
		}, giveback.Ask{GPUs: 4, Group: "h"}, "2 GPUs can"},
		"what has no room elsewhere comes after a shorter task": {func(f *fleet) {
			f.group("h", 1, 0)
			f.serves("a", "h")
			f.worker("b", "h", time.Minute)
		}, giveback.Ask{GPUs: 1, Group: "h", Force: true}, "b"},
		"all hosts of a replica": {func(f *fleet) {
			f.group("h", 4, 0)
			f.in.View.Cluster.Groups[0].NumOfHosts = 2
			f.worker("a", "h", time.Hour).Replica = "r1"
			f.worker("b", "h", 0).Replica = "r1"
			f.worker("c", "h", 0).Replica = "r2"
			f.worker("d", "h", 0).Replica = "r2"
		}, giveback.Ask{GPUs: 8, Group: "h", Force: true}, "c d"},
		"the most that can be": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", 0)
			f.worker("b", "h", time.Hour)
			f.worker("c", "h", time.Hour)
		}, giveback.Ask{GPUs: 3, Group: "h"}, "1 GPU can, without ending work that cannot move; with force all can"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet()
			c.make(f)
			got, err := Choose(f.in, c.ask)
			if err != nil {
				if !errors.Is(err, giveback.ErrRefused) && !errors.Is(err, giveback.ErrNotNow) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				return
			}
			var pods []string
			for _, w := range got.Workers {
				pods = append(pods, w.Pod)
			}
			if fmt.Sprint(strings.Join(pods, " ")) != c.want {
				t.Errorf("%v, want %s", pods, c.want)
			}
		})
	}
}

// A pool holds the GPUs of all groups that have workers there.
func TestWhatAReservationHolds(t *testing.T) {
	f := newFleet()
	f.group("four", 4, 0)
	f.group("two", 2, 0)
	f.group("elsewhere", 8, 0)
	f.worker("a", "four", 0).Pool = "p"
	f.worker("b", "two", time.Hour).Pool = "p"
	f.worker("c", "two", time.Hour).Pool = "q"
	f.worker("d", "elsewhere", 0).Pool = "q"
	got, err := Choose(f.in, giveback.Ask{GPUs: 4, Pool: "p", DeadlineSeconds: 600})
	if err != nil || got.Hold != 4 || len(got.PodGPUs) != 2 || got.PodGPUs["four"] != 4 || got.PodGPUs["two"] != 2 ||
		!got.Deadline.Equal(f.in.View.Now.Add(10*time.Minute)) {
		t.Fatalf("%+v, %v", got, err)
	}
	quota, holds := got.Quota()
	if !holds || quota.Amount != raydemand.Whole(4) || quota.PodTakes["four"] != raydemand.Whole(4) || quota.Resource != raydemand.GPU {
		t.Errorf("quota %+v", quota)
	}
}

func TestWhatIsOfferedCouldAllGoWithoutForce(t *testing.T) {
	for name, c := range map[string]struct {
		make func(*fleet)
		want string // the pods
	}{
		"idle ones": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", 0)
			f.worker("b", "h", time.Hour)
			f.worker("c", "h", 0)
		}, "a c"},
		"no idle one that its user protects": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", 0).Guard.SafeToEvict = nodepool.MarkedByUser
			f.worker("b", "h", 0).Guard.SafeToEvict = nodepool.MarkedByUs
		}, "b"},
		"actors only if the RayCluster lets them move": {func(f *fleet) {
			f.group("h", 1, 0)
			f.group("g", 1, 0)
			f.serves("a", "h")
			f.in.Residents[0] = raydemand.Resident{Class: "Trainer", Alive: true, Node: f.in.Residents[0].Node,
				Resources: f.in.Residents[0].Resources, Restarts: 1}
			f.worker("b", "g", 0)
		}, "b"},
		"actors that the RayCluster lets move": {func(f *fleet) {
			f.group("h", 1, 0)
			f.group("g", 1, 0)
			f.serves("a", "h")
			f.in.Residents[0] = raydemand.Resident{Class: "Trainer", Alive: true, Node: f.in.Residents[0].Node,
				Resources: f.in.Residents[0].Resources, Restarts: 1}
			f.in.View.Cluster.Consolidate = nodepool.ConsolidateRestartable
			f.worker("b", "g", 0)
		}, "a b"},
		"none with another number of GPUs than its group": {func(f *fleet) {
			f.group("h", 2, 0)
			f.worker("a", "h", 0).Node.Total = raydemand.Bundle{raydemand.GPU: raydemand.Whole(8)}
			f.worker("b", "h", 0)
			f.worker("c", "h", 0).Node.Total = nil
		}, "b"},
		"none below the minimum": {func(f *fleet) {
			f.group("h", 1, 2)
			f.worker("a", "h", 0)
			f.worker("b", "h", 0)
			f.worker("c", "h", 0)
		}, "a"},
		"as many whose work moves as have room together": {func(f *fleet) {
			f.group("h", 2, 0)
			f.serves("a", "h")
			f.serves("b", "h")
			f.serves("c", "h")
		}, "a"},
		"an idle one, not the place of what would move there": {func(f *fleet) {
			f.group("h", 1, 0)
			f.worker("a", "h", 0)
			f.serves("b", "h")
		}, "a"},
		"all hosts of a replica": {func(f *fleet) {
			f.group("h", 4, 0)
			f.in.View.Cluster.Groups[0].NumOfHosts = 2
			f.worker("a", "h", 0).Replica = "r1"
			f.worker("b", "h", time.Hour).Replica = "r1"
			f.worker("c", "h", 0).Replica = "r2"
			f.worker("d", "h", 0).Replica = "r2"
		}, "c d"},
		"each group": {func(f *fleet) {
			f.group("h", 1, 0)
			f.group("g", 1, 0)
			f.worker("a", "g", 0)
			f.worker("b", "h", 0)
		}, "b a"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet()
			c.make(f)
			for i := range f.in.View.Cluster.Groups {
				f.in.View.Cluster.Groups[i].Kind = &landing.Pod{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}}
			}
			offers := Offers(f.in)
			pods := giveback.Pods(offers)
			if got := strings.Join(pods, " "); got != c.want {
				t.Fatalf("%s, want %s", got, c.want)
			}
			byGroup := map[string][]giveback.Offer{}
			for _, offer := range offers {
				byGroup[offer.Group] = append(byGroup[offer.Group], offer)
			}
			for group, all := range byGroup { // exactly these are agreed on, and no others
				got, err := Choose(f.in, giveback.Ask{GPUs: giveback.GPUsOf(all), Group: group, Taker: "ml/other", Pods: giveback.Pods(all)})
				if err != nil || len(got.Workers) != len(giveback.Pods(all)) {
					t.Errorf("%+v, %v; want all that is offered", got.Workers, err)
				}
				if got, err := Choose(f.in, giveback.Ask{GPUs: giveback.GPUsOf(all), Group: group, Pods: []string{"other"}}); err == nil {
					t.Errorf("%+v, although no other worker is offered", got.Workers)
				}
			}
		})
	}
}

// A worker whose start is not known may have started just now.
func TestAnOfferIsAsYoungAsItsYoungestWorker(t *testing.T) {
	f := newFleet()
	now := f.in.View.Now
	f.group("h", 1, 0)
	f.in.View.Cluster.Groups[0].NumOfHosts = 2
	f.in.View.Cluster.Groups[0].Kind = &landing.Pod{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}}
	for pod, c := range map[string]struct {
		replica string
		since   time.Time
	}{
		"a": {"old", now.Add(-3 * time.Hour)}, "b": {"old", now.Add(-2 * time.Hour)},
		"c": {"young", now.Add(-time.Minute)}, "d": {"young", now.Add(-3 * time.Hour)},
		"e": {"unknown", time.Time{}}, "f": {"unknown", now.Add(-3 * time.Hour)},
	} {
		m := f.worker(pod, "h", 0)
		m.Replica, m.StartedAt = c.replica, c.since
	}
	got := map[string]time.Duration{}
	for _, offer := range Offers(f.in) {
		got[slices.Min(giveback.Pods([]giveback.Offer{offer}))] = now.Sub(offer.Since)
	}
	if want := (map[string]time.Duration{"a": 2 * time.Hour, "c": time.Minute, "e": 0}); !maps.Equal(got, want) {
		t.Errorf("they have run for %v, want %v", got, want)
	}
}
