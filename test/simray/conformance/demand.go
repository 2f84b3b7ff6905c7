package conformance

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/simray"
)

// res maps the resources of a task to amounts.
type res = map[string]float64

func headAlone(t *testing.T, h head) {
	alive, err := h.nodes.CheckAlive(t.Context(), &raypb.CheckAliveRequest{})
	if err != nil || alive.GetRayVersion() != string(h.Version()) {
		t.Errorf("version %q, %v, want %s", alive.GetRayVersion(), err, h.Version())
	}
	var state raydemand.State
	h.eventually(t, func() string {
		state = h.state(t)
		if len(state.Nodes) != 1 || !state.Nodes[0].Head {
			return "no head node"
		}
		return ""
	})
	session, err := h.kv.InternalKVGet(t.Context(),
		&raypb.InternalKVGetRequest{Namespace: []byte("session"), Key: []byte("session_name")})
	if name := string(session.GetValue()); err != nil || name == "" || name != state.Session {
		t.Errorf("session %q, %v, the state says %q", name, err, state.Session)
	}
	if again := h.state(t); again.Version <= state.Version {
		t.Errorf("version went from %d to %d: it counts calls", state.Version, again.Version)
	}
}

func workersJoin(t *testing.T, h head) {
	for _, want := range []simray.Node{gpuWorker, cpuWorker} {
		h.Start(t, want)
	}
	for _, want := range []simray.Node{gpuWorker, cpuWorker} {
		got := h.node(t, want.Instance, raydemand.Idle)
		if got.Group != want.Group || got.Head || got.Idle <= 0 || got.IP == "" {
			t.Errorf("%s joined as %+v", want.Instance, got)
		}
		for name, amount := range want.Resources {
			if got.Total[name] != amount || got.Available[name] != amount {
				t.Errorf("%s: %s is %s of %s, want %s", want.Instance, name, got.Available[name], got.Total[name],
					amount)
			}
		}
		if got.Labels["zone"] != want.Labels["zone"] {
			t.Errorf("%s has labels %v", want.Instance, got.Labels)
		}
	}
	h.demands(t)
}

func shapesWait(t *testing.T, h head) {
	stop := h.Do(t, Work{Tasks: []Task{
		{Resources: res{"CPU": 1, "GPU": 4}, Count: 3},
		{Resources: res{"GPU": 0.5, "nope": 1}, Count: 5},
		{Resources: res{"special": 2.5}, Count: 7},
		{Resources: res{"CPU": 64}, Count: 1, Actor: true},
	}})
	h.demands(t, "3 x {CPU 1, GPU 4}", "5 x {GPU 0.5, nope 1}", "7 x {special 2.5}", "1 x {CPU 64}")
	stop()
	h.demands(t)
}

// manyShapes returns 150 tasks with different shapes.
func manyShapes() (work Work) {
	for i := range 150 {
		work.Tasks = append(work.Tasks, Task{Resources: res{"nope": float64(i + 1)}, Count: 1})
	}
	return work
}

func shapesCut(t *testing.T, h head) {
	stop := h.Do(t, manyShapes())
	h.eventually(t, func() string {
		state, err := h.ours.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if shapes := len(state.Demand.Requests); shapes != 100 || !state.Truncated || len(state.Findings) != 1 {
			return fmt.Sprintf("%d shapes, truncated %v, findings %+v", shapes, state.Truncated, state.Findings)
		}
		return ""
	})
	stop()
	h.eventually(t, func() string {
		state, err := h.ours.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return cmp.Diff(0, len(state.Demand.Requests))
	})
}

func selectorsWait(t *testing.T, h head) {
	if h.Version() == simray.Ray240 {
		t.Skip("Ray 2.40 has no label selectors")
	}
	stop := h.Do(t, Work{Tasks: []Task{
		{Resources: res{"CPU": 1, "GPU": 1}, Count: 2, Selectors: []map[string]string{
			{"zone": "us-1", "tier": "!spot", "gen": "in(b,a)", "old": "!in(x,y)"}}},
		{Resources: res{"CPU": 1, "GPU": 1}, Count: 12, Selectors: []map[string]string{{"zone": "in(us-3,us-1,us-2)"}}},
		{Resources: res{"CPU": 1}, Count: 4,
			Selectors: []map[string]string{{"zone": "us-1"}, {"zone": "us-2"}, {"tier": "!spot", "zone": "us-3"}}},
	}})
	fallbacks := " else zone=us-2 else tier=!spot zone=us-3"
	if h.Version() == simray.Ray252 {
		fallbacks = "" // the driver accepts them, but does not send them to the GCS
	}
	h.demands(t,
		"2 x {CPU 1, GPU 1} where gen=in(a,b) old=!in(x,y) tier=!spot zone=us-1",
		"12 x {CPU 1, GPU 1} where zone=in(us-1,us-2,us-3)",
		"4 x {CPU 1} where zone=us-1"+fallbacks,
	)
	stop()
	h.demands(t)
}

func gangsWait(t *testing.T, h head) {
	for _, strategy := range []string{"PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"} {
		stop := h.Do(t, Work{Gangs: []Gang{{Strategy: strategy,
			Bundles: []res{{"CPU": 1, "GPU": 4}, {"CPU": 1, "GPU": 4}, {"CPU": 2}}}}})
		h.demands(t, strategy+" [{CPU 1, GPU 4} {CPU 1, GPU 4} {CPU 2}]")
		if id := h.state(t).Demand.Gangs[0].ID; len(id) != 36 {
			t.Errorf("gang id %q, want 36 hex digits", id)
		}
		stop()
		h.demands(t)
	}
}

func labelledGangsWait(t *testing.T, h head) {
	if h.Version() == simray.Ray240 {
		t.Skip("Ray 2.40 has no bundle labels")
	}
	stop := h.Do(t, Work{Gangs: []Gang{{
		Strategy: "STRICT_SPREAD", Bundles: []res{{"CPU": 1, "GPU": 1}, {"CPU": 1, "GPU": 1}},
		Selectors: []map[string]string{{"zone": "us-1"}, {"zone": "in(us-3,us-2)", "tier": "!spot"}},
	}}})
	h.demands(t, "STRICT_SPREAD [{CPU 1, GPU 1} {CPU 1, GPU 1}] where [zone=us-1 tier=!spot zone=in(us-2,us-3)]")
	stop()
	h.demands(t)
	if h.Version() != simray.Ray260 {
		return
	}
	stop = h.Do(t, Work{Gangs: []Gang{{Topology: "ray.io/gpu-domain",
		Bundles: []res{{"CPU": 1, "GPU": 4}, {"CPU": 1, "GPU": 4}}}}})
	h.demands(t, "PACK [{CPU 1, GPU 4} {CPU 1, GPU 4}] on one ray.io/gpu-domain")
	stop()
	h.demands(t)
}

func sdkRequests(t *testing.T, h head) {
	h.RequestResources(t, []res{{"GPU": 1}, {"GPU": 1}, {"CPU": 2, "GPU": 1}}, nil)
	h.demands(t, "at least 2 x {GPU 1}", "at least 1 x {CPU 2, GPU 1}")
	h.RequestResources(t, []res{{"CPU": 3}}, nil)
	h.demands(t, "at least 1 x {CPU 3}")
	if h.Version() != simray.Ray240 {
		h.RequestResources(t, []res{{"GPU": 1}, {"CPU": 1}}, []map[string]string{{"zone": "us-1"}, {}})
		h.demands(t, "at least 1 x {GPU 1} where zone=us-1", "at least 1 x {CPU 1}")
	}
	h.RequestResources(t, nil, nil)
	h.demands(t)
}

func constraintByRPC(t *testing.T, h head) {
	write := func(entries ...*autoscalerpb.ResourceRequestByCount) {
		t.Helper()
		_, err := h.autoscaler.RequestClusterResourceConstraint(t.Context(),
			&autoscalerpb.RequestClusterResourceConstraintRequest{
				ClusterResourceConstraint: &autoscalerpb.ClusterResourceConstraint{ResourceRequests: entries},
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	gpu := &autoscalerpb.ResourceRequestByCount{
		Request: &autoscalerpb.ResourceRequest{ResourcesBundle: res{"GPU": 1.5}}, Count: 2,
	}
	write(gpu, gpu)
	h.demands(t, "at least 4 x {GPU 1.5}")
	write()
	h.demands(t)
}
