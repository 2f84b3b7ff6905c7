package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/addon/giveback"
	"heliostat.dev/heliostat/internal/addon/reclaim"
	"heliostat.dev/heliostat/pkg/nodepool"
	reservation "heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// desks are those of several RayClusters.
type desks map[nodepool.ClusterKey]*giveback.Desk

func (d desks) Offers(ctx context.Context, loop addon.Loop, o *addon.Cycle) ([]reservation.Offer, error) {
	return d[o.View.Cluster.Key].Offers(ctx, loop, o)
}

func (d desks) Agree(ctx context.Context, loop addon.Loop, o *addon.Cycle, ask reservation.Ask) (reservation.Reservation, error) {
	return d[o.View.Cluster.Key].Agree(ctx, loop, o, ask)
}

func (d desks) Enqueue(nodepool.ClusterKey) {}

// pair is two RayClusters on nodes of two GPUs each, to which nothing can be added. All GPUs have idle workers of low.
type pair struct {
	t         *testing.T
	high, low *world
	nodes     []string
}

// newPair has a taker of higher priority, and one that lets it take GPUs; change changes that before anything runs.
func newPair(t *testing.T, settings reclaim.Settings, nodes int, change func(*pair)) *pair {
	t.Helper()
	p := &pair{t: t}
	for i := range nodes {
		p.nodes = append(p.nodes, "n"+string(rune('0'+i)))
	}
	all := desks{}
	market := reclaim.New(all, settings)
	group := func(replicas int) nodepool.WorkerGroup {
		g := gpuGroup("gpu", replicas, 0, 9)
		g.Pod.Requests = landing.Quantities{"nvidia.com/gpu": raydemand.One}
		return g
	}
	p.high, p.low = newWorld(t, Config{}, group(0)), newWorld(t, Config{}, group(2*nodes))
	for name, w := range map[string]*world{"high": p.high, "low": p.low} {
		w.kube.cluster.Key.Name, w.kube.cluster.IdleTimeout = name, 24*time.Hour
		w.features.market = market
	}
	p.high.kube.cluster.Head.Priority, p.low.kube.cluster.Reclaimable = 100, true
	p.high.kube.other, p.low.kube.other = p.low.kube, p.high.kube
	change(p)
	p.schedule()
	for _, w := range []*world{p.high, p.low} {
		w.restart(Config{})
		all[w.kube.cluster.Key] = w.kube.desk
	}
	p.seconds(90)
	p.high.kube.events, p.low.kube.events = nil, nil
	return p
}

// schedule does what the scheduler and Ray do: pods get nodes that have room, and join; drained nodes end.
func (p *pair) schedule() {
	used := map[string]int64{}
	for _, w := range []*world{p.low, p.high} {
		for _, d := range w.ray.drains {
			for i := range w.ray.nodes {
				if n := &w.ray.nodes[i]; n.ID == d.Node.ID && len(n.Activity) == 0 {
					n.Status = raydemand.Dead
				}
			}
		}
		w.operate()
		for _, worker := range w.kube.cluster.Workers {
			used[worker.Node]++
		}
	}
	for _, w := range []*world{p.high, p.low} {
		for i := range w.kube.cluster.Workers {
			pod := &w.kube.cluster.Workers[i]
			at := slices.IndexFunc(p.nodes, func(n string) bool { return used[n] < 2 })
			if pod.Node == "" && at >= 0 {
				pod.Node, pod.ScheduledAt = p.nodes[at], w.now
				used[pod.Node]++
			}
			if pod.Counted, pod.Unschedulable = pod.Node != "", ""; !pod.Counted {
				pod.Unschedulable = "0/1 nodes are available"
			} else if pod.StartedAt.IsZero() {
				pod.StartedAt = w.now
			}
		}
	}
	var nodes []landing.Node
	for _, name := range p.nodes {
		nodes = append(nodes, landing.Node{Name: name, Pool: "p", Ready: true,
			Use:         &landing.Use{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(used[name])}},
			Allocatable: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(2)}})
	}
	none := int64(0)
	stock := landing.NodesOf(nodes, landing.Pools{Rooms: []landing.Room{{Pool: "p", Nodes: int64(len(nodes)), MaxNodes: new(int64), MayAddNodes: &none}}})
	for _, w := range []*world{p.high, p.low} {
		c := &w.kube.cluster
		places, pods := stock.Places([]landing.Kind{stock.KindOf("gpu", &c.Groups[0].Pod)})
		c.Stock, c.Places, c.Groups[0].Kind, c.Groups[0].Bound = stock, places, &pods[0], 0
		for i := range c.Workers {
			if c.Workers[i].Node != "" {
				c.Groups[0].Bound++
			}
		}
		w.joinOn()
	}
}

// joinOn lets the workers join that have a node.
func (w *world) joinOn() {
	pods := w.kube.cluster.Workers
	w.kube.cluster.Workers = slices.DeleteFunc(slices.Clone(pods), func(p nodepool.Worker) bool { return p.Node == "" })
	w.joinAll()
	for i := range pods {
		for _, joined := range w.kube.cluster.Workers {
			if joined.Pod == pods[i].Pod {
				pods[i] = joined
			}
		}
	}
	w.kube.cluster.Workers = pods
}

// seconds lets time pass, and returns the last decisions.
func (p *pair) seconds(n int) (high, low *addon.Decision) {
	for range n {
		high, low = p.high.after(time.Second), p.low.after(time.Second)
		p.schedule()
	}
	return high, low
}

// untilTaken lets time pass until GPUs are reserved for the taker.
func (p *pair) untilTaken() {
	for range 100 {
		if p.seconds(1); p.low.kube.cluster.GiveBack != nil {
			return
		}
	}
	p.t.Fatal("nothing is taken")
}

// have asserts how many workers each RayCluster has.
func (p *pair) have(when string, high, low int) {
	p.t.Helper()
	if h, l := len(p.high.kube.cluster.Workers), len(p.low.kube.cluster.Workers); h != high || l != low {
		p.t.Errorf("%s: %d workers of the taker and %d of the other, want %d and %d", when, h, l, high, low)
	}
}

// shows reports whether a decision has a finding about GPUs that would be taken, with that text.
func shows(d *addon.Decision, text string) bool {
	return slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool {
		return f.Code == reclaim.FindingPossible && strings.Contains(f.Why+"; "+f.Fix, text)
	})
}

var taking = reclaim.Settings{On: true, PerHour: 8, MinRuntime: time.Minute, Deadline: 10 * time.Minute}

// The taker gets as many GPUs as it waits for, and no more; the other one is held down until its pods are on nodes, does
// not take them back, and has them again when the work of the taker ends.
func TestAHigherPriorityTakesIdleWorkersOnceAndTheyComeBack(t *testing.T) {
	p := newPair(t, taking, 2, func(*pair) {})
	p.have("at first", 0, 4)
	p.high.want(1, gpu(1))
	p.seconds(25)
	p.have("before demand has settled", 0, 4)
	p.low.want(1, gpu(1)) // Ray places it on an idle worker soon; it must not keep them all
	p.low.want(0, nil)
	high, _ := p.seconds(60)
	p.have("after the taking", 1, 3)
	if p.low.kube.emitted("GiveBackBegins") != 1 || p.low.kube.emitted("GiveBackEnds") != 1 || p.low.kube.cluster.GiveBack != nil {
		t.Errorf("Events %v, reservation %+v, want one that has ended", p.low.kube.events, p.low.kube.cluster.GiveBack)
	}
	if reservation.Taken(p.low.kube.cluster.Reclaimed, p.low.now) != 1 || shows(high, "") {
		t.Errorf("taken %+v, findings %+v", p.low.kube.cluster.Reclaimed, high.Findings)
	}
	p.high.busy(p.high.pod(0))
	p.high.want(0, nil)
	for i := range p.low.kube.cluster.Workers {
		p.low.busy(p.low.pod(i))
	}
	p.low.want(1, gpu(1))
	p.seconds(120)
	p.have("while both work", 1, 3)
	p.high.kube.cluster.IdleTimeout = time.Second
	p.high.idles(p.high.pod(0))
	p.seconds(30)
	p.have("after the work of the taker", 0, 4)
}

func TestWhatIsNotTaken(t *testing.T) {
	off := taking
	off.On = false
	small, long := taking, taking
	small.PerHour, long.MinRuntime = 1, time.Hour
	owned := func(w *world, priority int32) {
		w.kube.cluster.Owned = []nodepool.OwnedRequest{{Owned: raydemand.Owned{ID: "r", Priority: priority,
			Requests: []raydemand.Request{{Bundle: gpu(1), Count: 1}}}}}
	}
	for name, c := range map[string]struct {
		settings reclaim.Settings
		change   func(*pair)
		high     int    // workers of the taker after a while
		shown    string // what its finding says; none for no finding
	}{
		"off shows it":            {off, func(*pair) {}, 0, "2 GPUs from group gpu of RayCluster ml/low (llm-gpu-1: idle; llm-gpu-2: idle) would make room for 2 pods of group gpu; start Heliostat with --reclaim"},
		"shadow shows it":         {taking, func(p *pair) { p.high.kube.cluster.Mode = nodepool.Shadow }, 0, "would make room for 2 pods of group gpu; Heliostat takes nothing for it"},
		"the other one is shadow": {taking, func(p *pair) { p.low.kube.cluster.Mode = nodepool.Shadow }, 0, "RayCluster ml/low gives nothing"},
		"off":                     {taking, func(p *pair) { p.high.kube.cluster.Mode = nodepool.Off }, 0, ""},
		"not opted in":            {taking, func(p *pair) { p.low.kube.cluster.Reclaimable = false }, 0, ""},
		"equal priorities":        {taking, func(p *pair) { p.low.kube.cluster.Head.Priority = 100 }, 0, ""},
		"a lower priority":        {taking, func(p *pair) { p.low.kube.cluster.Head.Priority = 200 }, 0, ""},
		"all of it":               {taking, func(*pair) {}, 2, ""},
		"only the budget":         {small, func(*pair) {}, 1, "gives at most 1 GPU an hour (--reclaim-gpus-per-hour), and has given 1 GPU"},
		"the budget is spent":     {small, func(p *pair) { p.low.kube.cluster.Reclaimed = []reservation.Taking{{At: p.low.now, GPUs: 1}} }, 0, "has given 1 GPU"},
		"the hour of it is over": {small, func(p *pair) {
			p.low.kube.cluster.Reclaimed = []reservation.Taking{{At: p.low.now.Add(-time.Hour), GPUs: 1}}
		}, 1, "has given 1 GPU"},
		"workers are too young":                               {long, func(*pair) {}, 0, "offers none: it gives no worker that has not run for 60m (--reclaim-min-runtime)"},
		"the minimum of the other":                            {taking, func(p *pair) { p.low.group("gpu").Min = 3 }, 1, ""},
		"it has a reservation":                                {taking, func(p *pair) { p.low.kube.cluster.GiveBack = &reservation.Reservation{Deadline: p.low.now} }, 0, ""},
		"its workers have tasks":                              {taking, func(p *pair) { p.low.busy(p.low.pod(0)); p.low.busy(p.low.pod(1)); p.low.busy(p.low.pod(2)) }, 1, ""},
		"the pool may grow":                                   {taking, func(p *pair) { p.nodes = append(p.nodes, "more") }, 2, ""},
		"a request of its priority":                           {taking, func(p *pair) { p.equal(); owned(p.low, 10); owned(p.high, 10) }, 0, ""},
		"a request of higher priority takes for itself alone": {taking, func(p *pair) { p.equal(); owned(p.low, 5); owned(p.high, 10) }, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, c.settings, 2, c.change)
			p.high.want(2, gpu(1))
			high, _ := p.seconds(100)
			if got := len(p.high.kube.cluster.Workers); got != c.high {
				t.Errorf("the taker has %d workers, want %d", got, c.high)
			}
			if c.shown == "" && shows(high, "") || !shows(high, c.shown) && c.shown != "" {
				t.Errorf("findings %+v, want %q", high.Findings, c.shown)
			}
			if want := p.high.kube.cluster.Mode == nodepool.Shadow || c.settings == off; want && len(p.low.ray.drains)+len(p.low.kube.events) > 0 {
				t.Errorf("drained %v, Events %v", p.low.ray.drained(), p.low.kube.events)
			}
		})
	}
}

// What both want is compared again in the cycle that answers: the one that is asked may have opted out since, or have
// a higher priority, or have given to somebody else, and the taker may need less.
func TestWhatHasChangedSinceTheAskIsNotTaken(t *testing.T) {
	small := taking
	small.PerHour = 1
	for name, change := range map[string]func(*pair){
		"opted out":         func(p *pair) { p.low.kube.cluster.Reclaimable = false },
		"a higher priority": func(p *pair) { p.low.kube.cluster.Head.Priority = 500 },
		"a request of priority": func(p *pair) {
			p.low.kube.cluster.Owned = []nodepool.OwnedRequest{{Owned: raydemand.Owned{ID: "r", Priority: 10,
				Requests: []raydemand.Request{{Bundle: gpu(1), Count: 1}}}}}
		},
		"the budget is spent": func(p *pair) {
			p.low.kube.cluster.Reclaimed = []reservation.Taking{{At: p.low.now, GPUs: 1}}
		},
		"less demand":         func(p *pair) { p.high.want(0, nil); p.high.after(time.Second) },
		"the taker is shadow": func(p *pair) { p.high.kube.cluster.Mode = nodepool.Shadow; p.high.after(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, small, 1, func(*pair) {})
			p.high.want(1, gpu(1))
			p.seconds(27)
			for range 6 { // it asks at 30 s, and no cycle of the other one answers
				p.high.after(time.Second)
			}
			if p.low.kube.cluster.GiveBack != nil {
				t.Fatal("taken before anything has changed")
			}
			change(p)
			p.low.after(6 * time.Second)
			if p.low.kube.cluster.GiveBack != nil || len(p.low.ray.drained()) > 0 {
				t.Errorf("reservation %v, drained %v", p.low.kube.cluster.GiveBack, p.low.ray.drained())
			}
		})
	}
}

// equal gives both the same PriorityClass.
func (p *pair) equal() { p.low.kube.cluster.Head.Priority = p.high.kube.cluster.Head.Priority }

// A taker that is deleted or off launches nothing: the reservation for it ends before anything is drained, also if the
// process has restarted since.
func TestTheReservationEndsWithoutADrainIfTheTakerGoes(t *testing.T) {
	for name, change := range map[string]func(*pair){
		"deleted":       func(p *pair) { p.high.kube.clusterErr = nodepool.ErrGone },
		"being deleted": func(p *pair) { p.high.kube.cluster.Deleting = true },
		"off":           func(p *pair) { p.high.kube.cluster.Mode = nodepool.Off },
		"in shadow":     func(p *pair) { p.high.kube.cluster.Mode = nodepool.Shadow },
		"deleted during a restart": func(p *pair) {
			p.high.kube.clusterErr = nodepool.ErrGone
			p.low.features.market = reclaim.New(desks{p.low.kube.cluster.Key: p.low.kube.desk}, taking)
			p.low.restart(Config{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, taking, 1, func(*pair) {})
			p.high.want(1, gpu(1))
			p.untilTaken()
			if p.low.kube.cluster.GiveBack == nil || len(p.low.ray.drained()) > 0 {
				t.Fatalf("reservation %v, drained %v", p.low.kube.cluster.GiveBack, p.low.ray.drained())
			}
			change(p)
			for range 5 {
				p.low.after(time.Second)
				p.schedule()
			}
			if p.low.kube.cluster.GiveBack != nil || len(p.low.ray.drained()) > 0 || p.low.kube.emitted("GiveBackEnds") != 1 {
				t.Errorf("reservation %v, drained %v, Events %v", p.low.kube.cluster.GiveBack, p.low.ray.drained(), p.low.kube.events)
			}
			p.have("afterwards", 0, 2)
		})
	}
}

func TestAReservationLastsWhileTheOneThatGivesHasNoCycle(t *testing.T) {
	p := newPair(t, taking, 2, func(*pair) {})
	p.high.want(2, gpu(1))
	p.untilTaken()
	for range 15 {
		p.high.after(time.Second)
	}
	p.low.pass(15 * time.Second)
	if p.low.cycle(); p.low.kube.cluster.GiveBack == nil {
		t.Errorf("it has ended; drained %v", p.low.ray.drained())
	}
}

func TestNothingIsAwaitedOfARayClusterThatIsGone(t *testing.T) {
	p := newPair(t, taking, 2, func(p *pair) {
		p.high.kube.cluster.Mode, p.low.kube.cluster.Mode = nodepool.Managed, nodepool.Managed
	})
	p.low.c.config.DefaultMode = nodepool.Shadow
	p.high.want(2, gpu(1))
	p.untilTaken()
	p.low.after(time.Second)
	before := p.high.after(time.Second).Awaits
	p.low.kube.clusterErr = nodepool.ErrGone
	p.low.c.Cycle(context.Background(), p.low.kube.cluster.Key)
	if after := p.high.after(time.Second).Awaits; len(before) == 0 || len(after) > 0 {
		t.Errorf("awaited are %v, and when it is gone %v", before, after)
	}
}

// trains puts a task on the first worker of low, and an actor that Ray restarts on the second. Both may end.
func trains(p *pair) {
	one := raydemand.Bundle{raydemand.CPU: raydemand.One}
	p.low.kube.cluster.Consolidate = nodepool.ConsolidateRestartable
	task := p.low.node(p.low.pod(0))
	task.Status, task.Activity = raydemand.Running, []string{raydemand.ActiveWorkers, "Resource: CPU currently in use."}
	task.Available.Take(one)
	p.low.place(p.low.pod(1), raydemand.Resident{Class: "Trainer", Alive: true, Resources: one, Restarts: 3})
}

// A task without resources may run beside an actor, and Ray does not show it. Without the annotation, such a worker is
// not taken, and one that is drained already does not end.
func TestActorsAreTakenOnlyIfTheRayClusterLetsThemMove(t *testing.T) {
	p := newPair(t, taking, 1, trains)
	p.high.want(1, gpu(1))
	p.low.kube.cluster.Consolidate = nodepool.ConsolidateServe
	p.seconds(120)
	if drained := p.low.ray.drained(); len(drained) > 0 {
		t.Fatalf("drained %v without the annotation", drained)
	}
	p.low.kube.cluster.Consolidate = nodepool.ConsolidateRestartable
	p.seconds(60)
	if drained := p.low.ray.drained(); !slices.Equal(drained, []string{p.low.pod(1)}) {
		t.Fatalf("drained %v with it, want %s", drained, p.low.pod(1))
	}
	p.low.kube.cluster.Consolidate = ""
	p.seconds(620)
	p.have("after the deadline, without the annotation", 0, 2)
}

// A pod of the taker exists already and waits: the reservation holds until it has a node, and no longer.
func TestRoomIsTakenForAPodThatWaits(t *testing.T) {
	p := newPair(t, taking, 1, func(*pair) {})
	p.high.group("gpu").Replicas = 1
	p.high.want(1, gpu(1))
	p.untilTaken()
	for second := range 10 {
		p.seconds(1)
		node, held := p.high.kube.cluster.Workers[0].Node, p.low.kube.cluster.GiveBack != nil
		if placed := node != ""; placed != (second > 0) || held != (second < 7) {
			t.Errorf("after %d s the pod is on node %q, the reservation holds: %v", second+1, node, held)
		}
	}
	p.have("after the taking", 1, 1)
}

// From the reservation until the pods of the taker are on nodes, their room is promised to it: a third RayCluster of
// lower priority that waits too does not get it. A process that restarts meanwhile promises it again.
func TestRoomIsKeptForTheTaker(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		p := newPair(t, taking, 1, func(*pair) {})
		p.low.busy(p.low.pod(0))
		p.low.busy(p.low.pod(1))
		p.low.idles(p.low.pod(1)) // it is drained, and ends some seconds later
		p.high.want(1, gpu(1))
		p.untilTaken()
		p.low.busy(p.low.pod(1))
		if restarts {
			p.restart()
		}
		for second := range 60 {
			if second == 30 {
				p.low.idles(p.low.pod(1))
			}
			high, _ := p.seconds(1)
			promises := promisesOf(high)
			if len(p.high.kube.cluster.Workers) == 0 && second > 1 && (len(promises) != 1 || promises[0].Pods != 1) {
				t.Errorf("restart %t: after %d s %+v is promised", restarts, second, promises)
			}
		}
		p.have("at last", 1, 1)
	}
}

// restart begins both with an empty memory, as a new process does.
func (p *pair) restart() {
	market := reclaim.New(desks{p.high.kube.cluster.Key: p.high.kube.desk, p.low.kube.cluster.Key: p.low.kube.desk}, taking)
	for _, w := range []*world{p.high, p.low} {
		w.features.market = market
		w.restart(Config{})
	}
}
