package costs

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/price"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bundle returns GPUs and CPUs.
func bundle(gpus, cpus int64) raydemand.Bundle {
	b := raydemand.Bundle{raydemand.CPU: raydemand.Whole(cpus)}
	if gpus >= 0 {
		b[raydemand.GPU] = raydemand.Whole(gpus)
	}
	return b
}

// world is a decision about one worker of group gpu that costs 8 an hour and has 4 GPUs.
func world(change func(*addon.Decision, *nodepool.Worker, *planner.Node)) *addon.Decision {
	price, timeout := 8.0, 60.0
	d := &addon.Decision{
		Mode: nodepool.Managed,
		Kube: nodepool.Cluster{
			Key:    nodepool.ClusterKey{Namespace: "ml", Name: "llm"},
			Groups: []nodepool.WorkerGroup{{Name: "gpu", Resources: bundle(4, 8), Price: &price}},
		},
		Snapshot: planner.Snapshot{IdleTimeoutSeconds: &timeout, Groups: []planner.Group{{Name: "gpu", Max: 4}}},
		Plan:     planner.Plan{Groups: []planner.GroupPlan{{Name: "gpu", Desired: 1}}},
	}
	w := nodepool.Worker{Pod: "a", Group: "gpu", Node: "n", CreatedAt: at, ScheduledAt: at.Add(time.Second)}
	n := planner.Node{Pod: "a", Group: "gpu", State: planner.Running, Total: bundle(4, 8), Available: bundle(0, 0),
		Activity: []string{raydemand.ActiveWorkers, "Resource: GPU currently in use."}}
	if change != nil {
		change(d, &w, &n)
	}
	d.Pods = addon.LatestOf([]nodepool.Worker{w})
	if n.Pod != "" {
		d.Snapshot.Nodes = []planner.Node{n}
	}
	return d
}

func TestEachPartOfAPodHasACause(t *testing.T) {
	const owner = "RayCluster/llm"
	type part struct {
		Owner string
		Cause ledger.Cause
		Why   string
		Part  float64
	}
	idle := func(seconds float64) func(*addon.Decision, *nodepool.Worker, *planner.Node) {
		return func(d *addon.Decision, _ *nodepool.Worker, n *planner.Node) {
			n.State, n.Available, n.Activity, n.IdleSeconds = planner.Idle, bundle(4, 8), nil, seconds
			d.Plan.Stays = map[string]string{n.Pod: "idle_timeout"}
			if seconds > 60 {
				d.Plan.Stays[n.Pod] = planner.UnusedKept
			}
		}
	}
	also := func(changes ...func(*addon.Decision, *nodepool.Worker, *planner.Node)) func(*addon.Decision, *nodepool.Worker, *planner.Node) {
		return func(d *addon.Decision, w *nodepool.Worker, n *planner.Node) {
			for _, change := range changes {
				change(d, w, n)
			}
		}
	}
	type changed = func(*addon.Decision, *nodepool.Worker, *planner.Node)
	for name, c := range map[string]struct {
		change changed
		want   []part
	}{
		"all is used": {nil, []part{{owner, ledger.Used, "", 1}}},
		"a part is used": {func(_ *addon.Decision, _ *nodepool.Worker, n *planner.Node) { n.Available = bundle(3, 4) },
			[]part{{owner, ledger.Used, "", 0.25}, {owner, ledger.Idle, "no_demand", 0.75}}},
		"a RayJob has it": {func(d *addon.Decision, _ *nodepool.Worker, _ *planner.Node) {
			d.Kube.Owner = nodepool.Owner{Kind: "RayJob", Name: "nightly"}
		}, []part{{"RayJob/nightly", ledger.Used, "", 1}}},
		"the idle timeout runs": {idle(30), []part{{owner, ledger.Idle, "idle_timeout", 1}}},
		"idle, no timeout":      {also(idle(30), func(d *addon.Decision, _ *nodepool.Worker, _ *planner.Node) { d.Plan.Stays["a"] = "no_idle_timeout" }), []part{{owner, ledger.Idle, "no_idle_timeout", 1}}},
		"idle, demand is on it": {idle(90), []part{{owner, ledger.Idle, "kept", 1}}},
		"a policy keeps it warm": {also(idle(30), func(d *addon.Decision, _ *nodepool.Worker, _ *planner.Node) {
			d.Plan.Stays["a"] = planner.UnusedWarm
		}), []part{{owner, ledger.Warm, "", 1}}},
		"a request keeps a warm one": {also(idle(30), requests("a"), func(d *addon.Decision, _ *nodepool.Worker, _ *planner.Node) {
			d.Plan.Stays["a"] = planner.UnusedWarm
		}),
			[]part{{owner, ledger.Reserved, "", 1}}},
		"the driver keeps it": {also(idle(90), func(d *addon.Decision, _ *nodepool.Worker, _ *planner.Node) {
			d.Snapshot.Constraint = []raydemand.Request{{Count: 1}}
		}), []part{{owner, ledger.Reserved, "", 1}}},
		"two requests keep it":     {also(idle(30), requests("a")), []part{{owner, ledger.Reserved, "", 1}}},
		"a request of many pods":   {also(idle(90), requests("another")), []part{{owner, ledger.Reserved, "", 1}}},
		"within a request, unused": {also(requests("a"), func(_ *addon.Decision, _ *nodepool.Worker, n *planner.Node) { n.Available = bundle(2, 4) }), []part{{owner, ledger.Used, "", 0.5}, {owner, ledger.Reserved, "", 0.5}}},
		"a placement group reserves its GPUs": {func(_ *addon.Decision, _ *nodepool.Worker, n *planner.Node) {
			n.Activity, n.PlacedLabels = []string{"Resource: GPU currently in use."}, map[string]string{"_PG_1": ""}
		}, []part{{owner, ledger.Reserved, "", 1}}},
		"objects hold it": {func(_ *addon.Decision, _ *nodepool.Worker, n *planner.Node) {
			n.Available, n.Activity = bundle(4, 8), []string{"Resource: object_store_memory currently in use."}
		}, []part{{owner, ledger.Idle, "holds_objects", 1}}},
		"just joined": {func(_ *addon.Decision, _ *nodepool.Worker, n *planner.Node) {
			n.Available, n.Activity = bundle(4, 8), nil
		}, []part{{owner, ledger.Starting, "", 1}}},
		"no GPUs, half of the CPUs": {func(_ *addon.Decision, _ *nodepool.Worker, n *planner.Node) {
			n.Total, n.Available, n.Activity = bundle(-1, 8), bundle(-1, 4), []string{raydemand.ActiveWorkers, "Resource: CPU currently in use."}
		}, []part{{owner, ledger.Used, "", 0.5}, {owner, ledger.Idle, "no_demand", 0.5}}},
		"drains with work": {func(_ *addon.Decision, _ *nodepool.Worker, n *planner.Node) {
			n.State, n.Available = planner.Leaving, bundle(1, 8)
		}, []part{{owner, ledger.Used, "", 0.75}, {owner, ledger.Leaving, "", 0.25}}},
		"waits for a node": {func(_ *addon.Decision, w *nodepool.Worker, n *planner.Node) {
			n.State, w.Node, w.ScheduledAt = planner.Pending, "", time.Time{}
		}, []part{{owner, ledger.Starting, "", 1}}},
		"pulls its image": {func(_ *addon.Decision, _ *nodepool.Worker, n *planner.Node) {
			n.State, n.Since = planner.Pending, at
		}, []part{{owner, ledger.Starting, "", 1}}},
		"did not join in time": {func(_ *addon.Decision, _ *nodepool.Worker, n *planner.Node) { n.State = planner.AllocationTimeout }, []part{{owner, ledger.Lost, "", 1}}},
		"withdrawn": {func(_ *addon.Decision, w *nodepool.Worker, n *planner.Node) {
			n.State, n.Since, w.Terminating = planner.Leaving, at, true
		}, []part{{owner, ledger.Leaving, "", 1}}},
		"has failed": {func(_ *addon.Decision, w *nodepool.Worker, n *planner.Node) { n.Pod, w.Failed = "", true }, []part{{owner, ledger.Lost, "", 1}}},
		"its machine is gone": {func(_ *addon.Decision, w *nodepool.Worker, n *planner.Node) {
			n.State, w.NodeGone = planner.Leaving, true
		}, []part{{owner, ledger.Lost, "", 1}}},
		"of a group that was": {func(_ *addon.Decision, w *nodepool.Worker, n *planner.Node) { n.Pod, w.Group = "", "old" }, []part{{owner, ledger.Unknown, "", 1}}},
		"Ray does not answer": {func(d *addon.Decision, _ *nodepool.Worker, _ *planner.Node) { d.RayErr = "timeout" }, []part{{owner, ledger.Unknown, "", 1}}},
		"the mode is off":     {func(d *addon.Decision, _ *nodepool.Worker, _ *planner.Node) { d.Mode = nodepool.Off }, []part{{owner, ledger.Unknown, "", 1}}},
		"starts in any silence": {func(d *addon.Decision, _ *nodepool.Worker, n *planner.Node) {
			d.RayErr, n.State = "timeout", planner.Pending
		}, []part{{owner, ledger.Starting, "", 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []part
			var gpus, hourly, parts float64
			pods := Of(nil, world(c.change), nil)
			for _, p := range pods {
				got = append(got, part{p.Owner, p.Cause, p.Why, p.Part})
				gpus, hourly, parts = gpus+p.GPUs, hourly+p.Hourly, parts+p.Part
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if math.Abs(parts-1) > 1e-9 {
				t.Errorf("the parts add up to %v", parts)
			}
			if name == "a part is used" && (gpus != 4 || hourly != 8 || pods[1].GPUs != 3 || pods[1].Hourly != 6) {
				t.Errorf("%v GPUs for %v an hour: %+v", gpus, hourly, pods)
			}
			if bound := name != "waits for a node"; !bound && gpus+hourly > 0 {
				t.Errorf("a pod without a node has %v GPUs and costs %v", gpus, hourly)
			}
		})
	}
}

// requests lets a request of ann and the plain request name a pod.
func requests(pod string) func(*addon.Decision, *nodepool.Worker, *planner.Node) {
	return func(d *addon.Decision, _ *nodepool.Worker, _ *planner.Node) {
		d.Plan.Requests = []planner.RequestPlan{{ID: "r", Owner: "ann", Pods: []string{pod}}, {Plain: true, Pods: []string{pod}}}
	}
}

func TestAPodOnANodeThatNobodyPricesIsUnpriced(t *testing.T) {
	d := world(func(d *addon.Decision, _ *nodepool.Worker, _ *planner.Node) { d.Kube.Groups[0].Price = nil })
	if got := Of(nil, d, nil); len(got) != 1 || !got[0].Unpriced || got[0].Hourly != 0 || got[0].GPUs != 4 {
		t.Errorf("%+v", got)
	}
}

func TestTheHeadCostsItsShareOfItsNode(t *testing.T) {
	cpus := func(n int64) landing.Quantities { return landing.Quantities{"cpu": raydemand.Whole(n)} }
	nodes := []landing.Node{{Name: "m", Labels: map[string]string{"node.kubernetes.io/instance-type": "big"}, Allocatable: cpus(16)}}
	d := world(nil)
	d.Kube.Stock = landing.NodesOf(nodes, landing.Pools{})
	d.RayErr = "timeout"
	d.Kube.Head = nodepool.Head{Pod: "h", Shape: &landing.PodShape{Requests: cpus(4)}}
	book := &price.Book{InstanceTypes: map[string]float64{"big": 8}}
	head := func() ledger.Pod {
		pods := Of(nil, d, book)
		return pods[len(pods)-1]
	}
	want := ledger.Pod{Account: ledger.Account{Group: ledger.HeadGroup, Owner: "RayCluster/llm", Cause: ledger.Head},
		Part: 1}
	if diff := cmp.Diff(want, head()); diff != "" {
		t.Errorf("without a node: -want +got:\n%s", diff)
	}
	d.Kube.Head.Node = "m"
	want.Hourly = 2
	if diff := cmp.Diff(want, head()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	d.Kube.Head.Node = "unknown"
	want.Hourly, want.Unpriced = 0, true
	if diff := cmp.Diff(want, head()); diff != "" {
		t.Errorf("on a node that nobody knows: -want +got:\n%s", diff)
	}
}
