package savings_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/savings"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// part is one part of a pod of group gpu that has 8 GPUs at 8 an hour.
func part(pod string, cause ledger.Cause, why string, of float64) ledger.Pod {
	return ledger.Pod{Pod: pod, Account: ledger.Account{Group: "gpu", Cause: cause, Why: why}, Part: of, GPUs: 8 * of, Hourly: 8 * of,
		Created: begin, Bound: begin}
}

// seen lets a history see pods each minute from one minute to another.
func seen(h *savings.History, from, to, minimum int, pods ...ledger.Pod) {
	groups := []nodepool.WorkerGroup{{Name: "gpu", Min: minimum, NumOfHosts: 1}}
	for m := from; m <= to; m++ {
		h.Observe(savings.Observation{At: begin.Add(time.Duration(m) * time.Minute), Cluster: llm, Groups: groups, IdleTimeout: time.Hour, Pods: pods})
	}
}

func recordOf(t *testing.T, h *savings.History) savings.Record {
	t.Helper()
	records := h.Since(llm, begin)
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	return records[0]
}

var near = cmpopts.EquateApprox(0, 1e-6)

func TestAWorkerThatGetsWorkAfterItsTimeoutWouldHaveHadToStartAgain(t *testing.T) {
	h := savings.New()
	seen(h, 0, 9, 0, part("a", ledger.Idle, "idle_timeout", 1))
	seen(h, 10, 20, 0, part("a", ledger.Used, "", 1))
	r := recordOf(t, h)
	for i, want := range []savings.Timeout{
		{Saved: savings.Sum{570, 4560, 570.0 * 8 / 3600, 0}, Starts: 1}, {Saved: savings.Sum{540, 4320, 1.2, 0}, Starts: 1},
		{Saved: savings.Sum{480, 3840, 480.0 * 8 / 3600, 0}, Starts: 1}, {Saved: savings.Sum{300, 2400, 300.0 * 8 / 3600, 0}, Starts: 1}, {}, {},
	} {
		if diff := cmp.Diff(want, r.Timeouts[i], near); diff != "" {
			t.Errorf("timeout %v: -want +got:\n%s", savings.Timeouts[i], diff)
		}
	}
	if o := r.Replay(1); !o.Assumed || o.Starts != 1 || o.Waited != 300 || math.Abs(o.Cost.PodSeconds()-(1200-540+300)) > 1e-6 {
		t.Errorf("%+v", o)
	}
}

func TestTheRecordOfAGroupThatIsGoneIsDropped(t *testing.T) {
	h := savings.New()
	seen(h, 0, 9, 0, part("a", ledger.Used, "", 1))
	h.Observe(savings.Observation{At: begin.Add(10 * time.Minute), Cluster: llm}) // its pod goes
	h.Observe(savings.Observation{At: begin.Add(11 * time.Minute), Cluster: llm})
	if records := h.Since(llm, begin); len(records) != 0 {
		t.Errorf("%+v", records)
	}
}

func TestAnotherStartCostsItsEndToo(t *testing.T) {
	h := savings.New()
	seen(h, 0, 9, 0, part("a", ledger.Idle, "idle_timeout", 1), part("b", ledger.Used, "", 1))
	seen(h, 10, 12, 0, part("a", ledger.Used, "", 1), part("b", ledger.Leaving, "", 1))
	seen(h, 13, 20, 0, part("a", ledger.Used, "", 1))
	r := recordOf(t, h)
	if r.Leaves != 1 || r.LeavingSeconds != 180 {
		t.Fatalf("%v left in %v s, want one in 180 s", r.Leaves, r.LeavingSeconds)
	}
	// A minute's timeout saves nine minutes, and costs a start of five minutes and an end of three.
	if got, want := r.Replay(1).Cost.PodSeconds(), r.Observed.PodSeconds()-540+300+180; math.Abs(got-want) > 1e-6 {
		t.Errorf("it costs %v pod-seconds, want %v", got, want)
	}
}

func TestTheMinimumKeepsWorkersWhateverTheTimeout(t *testing.T) {
	h := savings.New()
	seen(h, 0, 30, 1, part("a", ledger.Idle, "idle_timeout", 1), part("b", ledger.Idle, "idle_timeout", 1))
	seen(h, 31, 31, 1, part("a", ledger.Leaving, "", 1), part("b", ledger.Idle, "minimum", 1))
	seen(h, 32, 60, 1, part("b", ledger.Idle, "minimum", 1))
	seen(h, 61, 70, 1, part("b", ledger.Used, "", 1))
	r := recordOf(t, h)
	if got := r.Timeouts[1]; got.Starts != 0 || math.Abs(got.Saved.PodSeconds()-30*60) > 1e-6 {
		t.Errorf("one of two could have gone after a minute, and none had to start: %+v", got)
	}
	if got := r.Reserve[0]; got.Starts != 1 || math.Abs(got.Saved.PodSeconds()-30*60) > 1e-6 {
		t.Errorf("without the minimum: %+v", got)
	}
}

func TestALongerTimeoutSparesAStart(t *testing.T) {
	h := savings.New()
	groups := []nodepool.WorkerGroup{{Name: "gpu", NumOfHosts: 1}}
	see := func(second int, pods ...ledger.Pod) {
		h.Observe(savings.Observation{At: begin.Add(time.Duration(second) * time.Second), Cluster: llm, Groups: groups, IdleTimeout: time.Minute, Pods: pods})
	}
	see(0, part("a", ledger.Used, "", 1))
	see(10, part("a", ledger.Idle, "idle_timeout", 1))
	see(70, part("a", ledger.Leaving, "", 1))
	see(80)
	starts := part("b", ledger.Starting, "", 1)
	starts.Created, starts.Bound = begin.Add(180*time.Second), begin.Add(190*time.Second)
	see(200, starts)
	see(300, part("b", ledger.Used, "", 1))
	joins := starts
	joins.Cause = ledger.Used
	see(310, joins)
	r := recordOf(t, h)
	// With 2 minutes it would have stayed until second 130, with 5 minutes until the start of b at 200 or so.
	for i, want := range []savings.Timeout{{Saved: savings.Sum{30, 240, 30.0 * 8 / 3600, 0}}, {}, {Added: savings.Sum{60, 480, 60.0 * 8 / 3600, 0}}, {Added: savings.Sum{130, 1040, 130.0 * 8 / 3600, 0}, Spared: 1},
		{Added: savings.Sum{130, 1040, 130.0 * 8 / 3600, 0}, Spared: 1}, {Added: savings.Sum{130, 1040, 130.0 * 8 / 3600, 0}, Spared: 1}} {
		if diff := cmp.Diff(want, r.Timeouts[i], near); diff != "" {
			t.Errorf("timeout %v: -want +got:\n%s", savings.Timeouts[i], diff)
		}
	}
	if r.Starts != 1 || r.StartSeconds != 300 || r.Leaves != 1 || r.LeavingSeconds != 10 {
		t.Errorf("%v starts in %v s, %v ends in %v s", r.Starts, r.StartSeconds, r.Leaves, r.LeavingSeconds)
	}
	if o := r.Replay(3); o.Starts != -1 || o.Waited != -300 {
		t.Errorf("%+v", o)
	}
}

func TestWarmWorkersThatGetWorkAreThoseThatWouldHaveBeenMissing(t *testing.T) {
	h := savings.New()
	seen(h, 0, 10, 0, part("a", ledger.Warm, "", 1), part("b", ledger.Warm, "", 1), part("c", ledger.Warm, "", 1))
	seen(h, 11, 20, 0, part("a", ledger.Used, "", 1), part("b", ledger.Warm, "", 1), part("c", ledger.Warm, "", 1))
	seen(h, 21, 30, 0, part("a", ledger.Used, "", 1), part("b", ledger.Used, "", 1), part("c", ledger.Used, "", 1))
	r := recordOf(t, h)
	for i, starts := range []float64{1, 2, 3} { // lowered by 1, 2 and 4
		if got := r.Warm[i].Starts; got != starts {
			t.Errorf("lowered by %d: %v would have had to start, want %v", savings.Levels[i], got, starts)
		}
	}
	if got := r.Warm[1].Saved.PodSeconds(); math.Abs(got-2*21*60) > 1e-6 {
		t.Errorf("two of them cost %v pod-seconds", got)
	}
}

func TestARecordOutlivesItsProcess(t *testing.T) {
	h := savings.New()
	seen(h, 0, 9, 0, part("a", ledger.Idle, "idle_timeout", 1))
	seen(h, 10, 3*24*60, 0, part("a", ledger.Used, "", 0.5), part("a", ledger.Idle, "no_demand", 0.5))
	now := begin.Add(3 * 24 * time.Hour)
	want := recordOf(t, h)
	for _, coarse := range []bool{false, true} {
		next := savings.New()
		if err := next.Restore(llm, h.Save(llm, now, coarse)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, recordOf(t, next), cmpopts.EquateApprox(1e-5, 0.1)); diff != "" {
			t.Errorf("coarse %v: -want +got:\n%s", coarse, diff)
		}
	}
	fine, coarse := h.Save(llm, now, false), h.Save(llm, now, true)
	if len(coarse) >= len(fine) || len(fine) > 4096 {
		t.Errorf("%d and %d bytes", len(fine), len(coarse))
	}
	for text, want := range map[string]string{
		`{"v":2}`: "version 2: want 1",
		`[]`:      "cannot unmarshal",
		`{"v":1,"g":[{"n":"gpu","b":[{"f":5,"t":1}]}]}`:                "group gpu: from 5 until 1: want two times in order",
		`{"v":1,"g":[{"n":"gpu","b":[{"f":5,"t":9,"i":[{}]}]}]}`:       "i has 1 entries: want none or 6",
		`{"v":1,"g":[{"n":"gpu","b":[{"f":5,"t":9,"o":[-1,0,0,0]}]}]}`: "o: -1: want numbers from 0 on",
	} {
		if err := savings.New().Restore(llm, json.RawMessage(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestOldDaysBecomeWeeksAndAreDroppedAfterAMonth(t *testing.T) {
	h := savings.New()
	groups := []nodepool.WorkerGroup{{Name: "gpu", NumOfHosts: 1}}
	for m := 0; m <= 60*24*60; m += 4 {
		h.Observe(savings.Observation{At: begin.Add(time.Duration(m) * time.Minute), Cluster: llm, Groups: groups,
			Pods: []ledger.Pod{part("a", ledger.Used, "", 1)}})
	}
	now := begin.Add(60 * 24 * time.Hour)
	all := h.Since(llm, begin)[0]
	if days := all.Observed.PodSeconds() / 86400; days < 29 || days > 38 {
		t.Errorf("%v days are kept", days)
	}
	if last := h.Since(llm, now.Add(-24*time.Hour))[0].Observed.PodSeconds() / 86400; last < 1 || last > 2 {
		t.Errorf("the last day has %v days", last)
	}
	var saved struct {
		G []struct{ B []json.RawMessage }
	}
	if err := json.Unmarshal(h.Save(llm, now, false), &saved); err != nil || len(saved.G[0].B) > 14 {
		t.Errorf("%v, %d buckets", err, len(saved.G[0].B))
	}
}

func TestATimeInWhichNobodyLookedIsNoIdleTime(t *testing.T) {
	h := savings.New()
	seen(h, 0, 1, 0, part("a", ledger.Idle, "idle_timeout", 1))
	seen(h, 600, 601, 0, part("a", ledger.Idle, "idle_timeout", 1))
	r := recordOf(t, h)
	if r.Observed.PodSeconds() != 120 || r.Timeouts[0].Saved.PodSeconds() != 60 {
		t.Errorf("%+v", r)
	}
	h.Forget(llm)
	if len(h.Since(llm, begin)) != 0 || h.Save(llm, begin, false) != nil {
		t.Error("a RayCluster that is gone is still recorded")
	}
}

// advised returns what is advised about a RayCluster by a record, by kind and setting.
func advised(cluster nodepool.Cluster, mode nodepool.Mode, r savings.Record) map[string]savings.Advice {
	all := map[string]savings.Advice{}
	for _, a := range (savings.Situation{Cluster: &cluster, Mode: mode}).Advise(r) {
		all[fmt.Sprint(a.Kind, " ", a.From, " ", a.To)] = a
	}
	return all
}

func TestEachAdviceNamesTheChangeToMake(t *testing.T) {
	h := savings.New()
	seen(h, 0, 20, 2, part("a", ledger.Idle, "idle_timeout", 1), part("b", ledger.Idle, "minimum", 1), part("c", ledger.Idle, "minimum", 1),
		part("d", ledger.Warm, "", 1), part("e", ledger.Used, "", 0.25), part("e", ledger.Idle, "no_demand", 0.75))
	r := recordOf(t, h)
	gpus := podfit.PodShape{Requests: podfit.Quantities{"nvidia.com/gpu": raydemand.Whole(8)}}
	cluster := nodepool.Cluster{Key: llm, IdleTimeout: 10 * time.Minute,
		Groups: []nodepool.WorkerGroup{{Name: "cpu"}, {Name: "gpu", Index: 1, Min: 2, NumOfHosts: 1, Pod: gpus}},
		Policy: &capacity.Written{Policy: capacity.Policy{KeepWarm: []capacity.Warm{{Group: "gpu", Count: 1}}}}}
	all := advised(cluster, nodepool.Managed, r)
	for what, want := range map[string]string{
		"idle_timeout 600 60": "kubectl edit raycluster llm -n ml # group gpu: idleTimeoutSeconds: 60; it needs autoscalerOptions.version: v2",
		"min_replicas 2 0":    `kubectl patch raycluster llm -n ml --type=json -p='[{"op":"test","path":"/spec/workerGroupSpecs/1/groupName","value":"gpu"},{"op":"replace","path":"/spec/workerGroupSpecs/1/minReplicas","value":0}]'`,
		"keep_warm 1 0":       `autoscaler policy ml/llm --set '{"keepWarm":[{"group":"gpu","count":0}]}'`,
		"smaller_workers 8 2": "kubectl edit raycluster llm -n ml # group gpu: nvidia.com/gpu: 2 instead of 8",
	} {
		if got := all[what]; got.Change != want {
			t.Errorf("%s:\n%s\nwant\n%s", what, got.Change, want)
		}
	}
	scheduled := cluster
	scheduled.Policy = &capacity.Written{Policy: capacity.Policy{KeepWarm: []capacity.Warm{{Group: "gpu", Count: 1, Schedules: []capacity.Schedule{{}}}}}}
	if got, want := advised(scheduled, nodepool.Managed, r)["keep_warm 1 0"].Change, "autoscaler policy ml/llm # keepWarm[0].count: 0, also in its schedules"; got != want {
		t.Errorf("with a schedule:\n%s\nwant\n%s", got, want)
	}
	if _, has := all["smaller_workers 8 1"]; has {
		t.Error("a worker with one GPU is advised although work used two")
	}
	if a := all["smaller_workers 8 4"]; math.Abs(a.Saves().Money()-a.Observed.Money()/2) > 1e-6 {
		t.Errorf("half of the GPUs saves %v of %v", a.Saves().Money(), a.Observed.Money())
	}
	if _, has := all["idle_timeout 600 600"]; has {
		t.Error("the timeout in force is advised")
	}
	timeout := 10 * time.Minute
	cluster.Groups[1].IdleTimeout = &timeout
	if got, want := advised(cluster, nodepool.Managed, r)["idle_timeout 600 60"].Change, `kubectl patch raycluster llm -n ml --type=json -p='[{"op":"test","path":"/spec/workerGroupSpecs/1/groupName","value":"gpu"},{"op":"replace","path":"/spec/workerGroupSpecs/1/idleTimeoutSeconds","value":60}]'`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	cluster.Groups[1].IdleTimeout, cluster.Groups = nil, cluster.Groups[1:]
	if got, want := advised(cluster, nodepool.Managed, r)["idle_timeout 600 60"].Change, `kubectl patch raycluster llm -n ml --type=merge -p='{"spec":{"autoscalerOptions":{"idleTimeoutSeconds":60}}}'`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	shadow := advised(cluster, nodepool.Shadow, r)
	if a := shadow["manage 0 600"]; a.Change != "autoscaler manage ml/llm" || a.Saves().Money() <= 0 {
		t.Errorf("in shadow: %+v", shadow)
	}
	cluster.Owner = nodepool.Owner{Kind: "RayService", Name: "serve"}
	if got, want := advised(cluster, nodepool.Managed, r)["min_replicas 2 0"].Change, "kubectl edit rayservice serve -n ml # group gpu: minReplicas: 0"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got, want := advised(cluster, nodepool.Managed, r)["idle_timeout 600 60"].Change, "kubectl edit rayservice serve -n ml # group gpu: idleTimeoutSeconds: 60"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	cluster.Groups[0].NumOfHosts = 2
	for what := range advised(cluster, nodepool.Managed, r) {
		if !strings.HasPrefix(what, "smaller_workers") {
			t.Errorf("%s is advised for a group of replicas with several hosts", what)
		}
	}
}

func TestAWorkerThatNeedsMoreNowAndThenGetsAGroupBesideIt(t *testing.T) {
	h := savings.New()
	seen(h, 0, 999, 0, part("a", ledger.Used, "", 0.125), part("a", ledger.Idle, "no_demand", 0.875))
	seen(h, 1000, 1003, 0, part("a", ledger.Used, "", 1))
	gpus := podfit.PodShape{Requests: podfit.Quantities{"nvidia.com/gpu": raydemand.Whole(8)}}
	cluster := nodepool.Cluster{Key: llm, Groups: []nodepool.WorkerGroup{{Name: "gpu", NumOfHosts: 1, Pod: gpus}}}
	a := advised(cluster, nodepool.Managed, recordOf(t, h))["smaller_workers 8 4"]
	if want := "kubectl edit raycluster llm -n ml # add a copy of group gpu with nvidia.com/gpu: 4 and a higher priority"; a.Change != want || !strings.Contains(a.Why, "99.7 %") {
		t.Errorf("%s, %s", a.Change, a.Why)
	}
	if want := 1000.0 / 2 / 60 * 8; math.Abs(a.Saves().Money()-want) > 0.1 {
		t.Errorf("saves %v, want %v", a.Saves().Money(), want)
	}
}

// sliceable returns a RayCluster whose group gpu has whole cards of a model.
func sliceable(model string, cards int64) nodepool.Cluster {
	card := podfit.Slice{Kind: gpuinfo.Whole, Resource: gpuinfo.NvidiaGPU, UnitsPerPod: cards, Product: &model}
	return nodepool.Cluster{Key: llm, Groups: []nodepool.WorkerGroup{{Name: "gpu", NumOfHosts: 1,
		Resources: raydemand.Bundle{raydemand.GPU: raydemand.Whole(cards)}, Slices: []podfit.SliceAnswer{{Slice: card}}}}}
}

// holding returns a record of a worker of which work holds a part.
func holding(t *testing.T, held float64) savings.Record {
	h := savings.New()
	seen(h, 0, 600, 0, part("a", ledger.Used, "", held), part("a", ledger.Idle, "no_demand", 1-held))
	return recordOf(t, h)
}

func TestWorkThatAsksForAPartOfACardGetsTheSmallestSliceThatHasIt(t *testing.T) {
	for name, c := range map[string]struct {
		model string
		cards int64
		holds float64
		// saves is which part of the cost each change saves.
		saves map[string]float64
		want  string
	}{
		"a quarter of an H100": {"NVIDIA-H100-80GB-HBM3", 1, 0.25, map[string]float64{"slices 1 0.5": 1 - (4.0/7+0.5)/2, "slices 1 0.25": 1 - (2.0/7+0.25)/2},
			"group gpu: nvidia.com/mig-2g.20gb: 1 (docs/howto/share-gpus.md) instead of nvidia.com/gpu: 1; multiply num_gpus of its work by 4"},
		"an eighth of an A30, which has quarters": {"NVIDIA-A30", 1, 0.1, map[string]float64{"slices 1 0.5": 0.5, "slices 1 0.25": 0.75}, "nvidia.com/mig-1g.6gb: 1"},
		"a card without MIG": {"NVIDIA-A10G", 1, 0.2, map[string]float64{"slices 1 0.5": 0.5, "slices 1 0.25": 0.75},
			"nvidia.com/gpu: 1 on nodes where time-slicing or MPS shares a NVIDIA-A10G among 4 (docs/howto/share-gpus.md)"},
		"an eighth of two cards": {"NVIDIA-A10G", 2, 0.125, map[string]float64{"slices 2 0.5": 0.75, "slices 2 0.25": 0.875}, "instead of nvidia.com/gpu: 2"},
		"half of two cards":      {"NVIDIA-A10G", 2, 0.5, nil, ""},
		"eight cards":            {"NVIDIA-H100-80GB-HBM3", 8, 0.1, nil, ""},
		"a whole card":           {"NVIDIA-H100-80GB-HBM3", 1, 1, nil, ""},
		"more than a half":       {"NVIDIA-H100-80GB-HBM3", 1, 0.6, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := holding(t, c.holds)
			got, all := map[string]float64{}, ""
			for what, a := range advised(sliceable(c.model, c.cards), nodepool.Managed, r) {
				if a.Kind == savings.Slices {
					got[what] = a.Saves().Money() / r.Observed.Money()
					all += a.Change + "\n"
				}
			}
			if diff := cmp.Diff(c.saves, got, near, cmpopts.EquateEmpty()); diff != "" || !strings.Contains(all, c.want) {
				t.Errorf("-want +got:\n%s\n%s", diff, all)
			}
		})
	}
}

func TestASliceIsNotSuggestedForWhatIsNoWholeCard(t *testing.T) {
	r := holding(t, 0.1)
	for name, change := range map[string]func(*nodepool.WorkerGroup){
		"a slice":                   func(g *nodepool.WorkerGroup) { g.Slices[0].Kind = gpuinfo.TimeSliced },
		"a card that may be shared": func(g *nodepool.WorkerGroup) { g.Slices[0].Kind = gpuinfo.WholeUnproven },
		"an unknown model":          func(g *nodepool.WorkerGroup) { g.Slices[0].Product = nil },
		"nodes that differ":         func(g *nodepool.WorkerGroup) { g.Slices[0].Differ = []string{"whole", "mig"} },
		"another resource":          func(g *nodepool.WorkerGroup) { g.Slices[0].Resource = "amd.com/gpu" },
		"another number of GPUs":    func(g *nodepool.WorkerGroup) { g.Resources = raydemand.Bundle{raydemand.GPU: raydemand.Whole(4)} },
		"no GPUs":                   func(g *nodepool.WorkerGroup) { g.Slices = nil },
		"two resources that differ": func(g *nodepool.WorkerGroup) { g.Slices = append(g.Slices, g.Slices[0]) },
	} {
		cluster := sliceable("NVIDIA-A30", 1)
		change(&cluster.Groups[0])
		for what := range advised(cluster, nodepool.Managed, r) {
			if strings.HasPrefix(what, "slices") {
				t.Errorf("%s: %s is advised", name, what)
			}
		}
	}
}

func TestWorkThatNeedsAWholeCardNowAndThenKeepsItsGroup(t *testing.T) {
	h := savings.New()
	seen(h, 0, 999, 0, part("a", ledger.Used, "", 0.25), part("a", ledger.Idle, "no_demand", 0.75))
	seen(h, 1000, 1003, 0, part("a", ledger.Used, "", 1))
	a := advised(sliceable("NVIDIA-A100-SXM4-40GB", 1), nodepool.Managed, recordOf(t, h))["slices 1 0.25"]
	for _, want := range []string{"kubectl edit raycluster llm -n ml # add a copy of group gpu with nvidia.com/mig-2g.10gb: 1",
		"a label that its work selects", "99.7 %", "DCGM_FI_DEV_FB_USED", "the 9856 MiB of 2g.10gb"} {
		if !strings.Contains(a.Change+a.Why, want) {
			t.Errorf("want %q in %s; %s", want, a.Change, a.Why)
		}
	}
}

// BenchmarkObserve observes a RayCluster with 50 workers, of which nothing changes.
func BenchmarkObserve(b *testing.B) {
	h := savings.New()
	var pods []ledger.Pod
	for i := range 50 {
		pods = append(pods, part(fmt.Sprintf("w-%02d", i), [...]ledger.Cause{ledger.Used, ledger.Idle}[i%2], "idle_timeout", 1))
	}
	groups := []nodepool.WorkerGroup{{Name: "gpu", NumOfHosts: 1}}
	b.ReportAllocs()
	at := begin
	for b.Loop() {
		at = at.Add(time.Second)
		h.Observe(savings.Observation{At: at, Cluster: llm, Groups: groups, IdleTimeout: time.Minute, Pods: pods})
	}
}

func TestWhatSavesMostComesFirst(t *testing.T) {
	advice := func(group string, money, gpus, pods float64) savings.Advice {
		a := savings.Advice{Record: savings.Record{Cluster: llm, Group: group}}
		a.Observed = savings.Sum{pods, gpus, money, 0}
		return a
	}
	all := []savings.Advice{advice("f", 0, 0, 1), advice("e", 0, 0, 1), advice("d", 0, 0, 2), advice("c", 0, 3, 0), advice("b", 1, 9, 9),
		advice("a", 4, 0, 0)}
	savings.Sort(all)
	order := ""
	for i := range all {
		order += all[i].Group
	}
	if order != "abcdef" {
		t.Errorf("the order is %s", order)
	}
}
