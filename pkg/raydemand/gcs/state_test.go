package gcs

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func wireShape(count int64, resources map[string]float64, selectors ...*raypb.LabelSelector) *autoscalerpb.ResourceRequestByCount {
	return &autoscalerpb.ResourceRequestByCount{
		Request: &autoscalerpb.ResourceRequest{ResourcesBundle: resources, LabelSelectors: selectors}, Count: count,
	}
}

func wireIn(key string, values ...string) *raypb.LabelSelector {
	return &raypb.LabelSelector{LabelConstraints: []*raypb.LabelSelectorConstraint{{LabelKey: key, Operator: 1, LabelValues: values}}}
}

func TestLyingHeadCostsTheEntryAndIsAFinding(t *testing.T) {
	good := wireShape(2, map[string]float64{"GPU": 1})
	for name, lie := range map[string]func(*autoscalerpb.ClusterResourceState){
		"NaN": func(s *autoscalerpb.ClusterResourceState) {
			s.PendingResourceRequests[0].Request.ResourcesBundle["CPU"] = math.NaN()
		},
		"infinite": func(s *autoscalerpb.ClusterResourceState) {
			s.PendingResourceRequests[0].Request.ResourcesBundle["CPU"] = math.Inf(1)
		},
		"negative": func(s *autoscalerpb.ClusterResourceState) {
			s.PendingResourceRequests[0].Request.ResourcesBundle["CPU"] = -1
		},
		"out of range": func(s *autoscalerpb.ClusterResourceState) {
			s.PendingResourceRequests[0].Request.ResourcesBundle["CPU"] = 1e300
		},
		"count 0":        func(s *autoscalerpb.ClusterResourceState) { s.PendingResourceRequests[0].Count = 0 },
		"negative count": func(s *autoscalerpb.ClusterResourceState) { s.PendingResourceRequests[0].Count = -7 },
		"unknown operator": func(s *autoscalerpb.ClusterResourceState) {
			s.PendingResourceRequests[0].Request.LabelSelectors[0].LabelConstraints[0].Operator = 9
		},
		"no label values": func(s *autoscalerpb.ClusterResourceState) {
			s.PendingResourceRequests[0].Request.LabelSelectors[0].LabelConstraints[0].LabelValues = nil
		},
		"a value that no label has": func(s *autoscalerpb.ClusterResourceState) {
			s.PendingResourceRequests[0].Request.LabelSelectors[0].LabelConstraints[0].LabelValues = []string{"a,b"}
		},
		"operator left open": func(s *autoscalerpb.ClusterResourceState) {
			s.PendingResourceRequests[0].Request.LabelSelectors[0].LabelConstraints[0].Operator = 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			wire := &autoscalerpb.ClusterResourceState{PendingResourceRequests: []*autoscalerpb.ResourceRequestByCount{
				wireShape(1, map[string]float64{"CPU": 1}, wireIn("zone", "a")), good,
			}}
			lie(wire)
			d := &decoder{}
			state := d.state(wire, beside{})
			want := []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 2}}
			if diff := cmp.Diff(want, state.Demand.Requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if len(state.Findings) != 1 || state.Findings[0].Code != FindingBadValue {
				t.Errorf("findings %+v, want one", state.Findings)
			}
		})
	}
}

func TestLiesAboutANodeCostOnlyWhatTheyAreAbout(t *testing.T) {
	d := &decoder{}
	nodes := d.nodes([]*autoscalerpb.NodeState{
		{NodeId: []byte("short"), InstanceId: "a"},
		{NodeId: make([]byte, 28), InstanceId: "b", Status: 99, IdleDurationMs: 5},
		{NodeId: bytes.Repeat([]byte{1}, 28), InstanceId: "c", Status: autoscalerpb.NodeStatus_IDLE, IdleDurationMs: math.MaxInt64,
			TotalResources: map[string]float64{"CPU": 4, "GPU": math.NaN()}, AvailableResources: map[string]float64{"CPU": -1}},
	}, nil)
	if len(nodes) != 2 || len(d.findings) != 4 {
		t.Fatalf("%d nodes, findings %+v; want 2 and 4", len(nodes), d.findings)
	}
	if nodes[0].Status != raydemand.Unspecified || nodes[0].Idle != 0 {
		t.Errorf("unknown status: %+v", nodes[0])
	}
	c := nodes[1]
	if c.Idle <= 0 || c.Total["CPU"] != raydemand.Whole(4) || c.Total["GPU"] != 0 || c.Available["CPU"] != 0 {
		t.Errorf("node c: %+v", c)
	}
}

func TestFindingsOfOneReadingAreBounded(t *testing.T) {
	wire := &autoscalerpb.ClusterResourceState{}
	for range 10_000 {
		wire.PendingResourceRequests = append(wire.PendingResourceRequests, wireShape(-1, nil))
	}
	d := &decoder{}
	if state := d.state(wire, beside{}); len(state.Findings) != maxFindings {
		t.Errorf("%d findings, want %d", len(state.Findings), maxFindings)
	}
}

func TestEqualShapesMergeAndSaturate(t *testing.T) {
	d := &decoder{}
	got := d.requests("", []*autoscalerpb.ResourceRequestByCount{
		wireShape(math.MaxInt64, map[string]float64{"CPU": 1}, wireIn("zone", "a", "b")),
		wireShape(5, map[string]float64{"CPU": 1.00000001, "GPU": 0}, wireIn("zone", "b", "a", "a")),
		wireShape(3, map[string]float64{"CPU": 1}, &raypb.LabelSelector{}, wireIn("zone", "a")),
		wireShape(4, map[string]float64{"CPU": 1}),
		wireShape(9, map[string]float64{}),
		wireShape(6, map[string]float64{"my_group_a": 1}),
	})
	zone := raydemand.NewSelector(raydemand.Constraint{Key: "zone", Op: raydemand.In, Values: []string{"a", "b"}})
	want := []raydemand.Request{
		{Bundle: raydemand.Bundle{"CPU": raydemand.One}, Count: 7},
		{Bundle: raydemand.Bundle{"CPU": raydemand.One}, Count: math.MaxInt64, Selectors: []raydemand.Selector{zone}},
		{Bundle: raydemand.Bundle{"my_group_a": raydemand.One}, Count: 6},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func wireBundleRequest(gpus float64, selectors ...*raypb.LabelSelector) *autoscalerpb.ResourceRequest {
	return &autoscalerpb.ResourceRequest{ResourcesBundle: map[string]float64{"GPU": gpus}, LabelSelectors: selectors}
}

func TestGangsOfEveryForm(t *testing.T) {
	one, two := wireBundleRequest(1), wireBundleRequest(2)
	selector := func(r ...*autoscalerpb.ResourceRequest) *autoscalerpb.BundleSelector {
		return &autoscalerpb.BundleSelector{ResourceRequests: r}
	}
	bundles := func(amounts ...int64) (b []raydemand.Bundle) {
		for _, a := range amounts {
			b = append(b, raydemand.Bundle{"GPU": raydemand.Whole(a)})
		}
		return b
	}
	zone := raydemand.NewSelector(raydemand.Constraint{Key: "zone", Op: raydemand.In, Values: []string{"a"}})
	tests := []struct {
		name string
		wire *autoscalerpb.GangResourceRequest
		want []raydemand.Gang
	}{
		{"nothing left to place", &autoscalerpb.GangResourceRequest{Details: "ab:PACK|PENDING"}, []raydemand.Gang{}},
		{"whole alternatives are fallbacks", &autoscalerpb.GangResourceRequest{
			Details: "ab:PACK|PENDING", Requests: []*autoscalerpb.ResourceRequest{two},
			BundleSelectors: []*autoscalerpb.BundleSelector{selector(two), selector(one, one)},
		}, []raydemand.Gang{{ID: "ab", Strategy: raydemand.Pack, Bundles: bundles(2), Fallbacks: [][]raydemand.Bundle{bundles(1, 1)}}}},
		{"each alternative has its own labels", &autoscalerpb.GangResourceRequest{
			Details: "ab:PACK|PENDING", Requests: []*autoscalerpb.ResourceRequest{two},
			BundleSelectors: []*autoscalerpb.BundleSelector{selector(two), selector(one, one), selector(wireBundleRequest(2, wireIn("zone", "a")))},
		}, []raydemand.Gang{{ID: "ab", Strategy: raydemand.Pack, Bundles: bundles(2), Fallbacks: [][]raydemand.Bundle{bundles(1, 1), bundles(2)},
			FallbackSelectors: [][]raydemand.Selector{nil, {zone}}}}},
		{"a topology label, and labels that all bundles share", &autoscalerpb.GangResourceRequest{
			Details: "ab:PACK|PENDING", BundleSelectors: []*autoscalerpb.BundleSelector{{
				ResourceRequests: []*autoscalerpb.ResourceRequest{one, two},
				LocalityRequirement: &autoscalerpb.LocalityRequirement{
					LocalityConstraint: &autoscalerpb.LocalityConstraint{LabelName: "rack", PlacementStrategy: raypb.PlacementStrategy_STRICT_PACK},
					LabelSelector:      wireIn("zone", "a"),
				},
			}},
		}, []raydemand.Gang{{ID: "ab", Strategy: raydemand.Pack, Bundles: bundles(1, 2), TopologyLabel: "rack", BundleSelectors: []raydemand.Selector{zone, zone}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := &decoder{}
			if diff := cmp.Diff(test.want, d.gangs([]*autoscalerpb.GangResourceRequest{test.wire})); diff != "" || len(d.findings) > 0 {
				t.Errorf("gangs (-want +got):\n%s%+v", diff, d.findings)
			}
		})
	}
}

func TestOneUnreadableBundleMakesTheGangUnreadable(t *testing.T) {
	d := &decoder{}
	got := d.gangs([]*autoscalerpb.GangResourceRequest{
		{Details: "ab:PACK|PENDING", Requests: []*autoscalerpb.ResourceRequest{wireBundleRequest(1), wireBundleRequest(math.NaN())}},
		{Details: "cd:PACK|PENDING", BundleSelectors: []*autoscalerpb.BundleSelector{{
			ResourceRequests: []*autoscalerpb.ResourceRequest{wireBundleRequest(1)},
			LocalityRequirement: &autoscalerpb.LocalityRequirement{LocalityConstraint: &autoscalerpb.LocalityConstraint{
				LabelName: "rack", PlacementStrategy: raypb.PlacementStrategy_STRICT_SPREAD}},
		}}},
	})
	if len(got) != 0 || len(d.findings) != 2 {
		t.Errorf("gangs %+v, findings %+v; want none and 2", got, d.findings)
	}
}

func TestSDKRequestOfBothForms(t *testing.T) {
	tests := []struct {
		text     string
		want     []string
		findings int
	}{
		{"", nil, 0},
		{"[]", nil, 0},
		{`[{"CPU": 1}, {"CPU": 1}, {"GPU": 0.5}]`, []string{"2 x {CPU 1}", "1 x {GPU 0.5}"}, 0},
		{`[{"resources": {"CPU": 1}, "label_selector": {"zone": "!in(b,a)"}}]`, []string{"1 x {CPU 1} where zone=!in(a,b)"}, 0},
		{`[{"resources": 3}]`, []string{"1 x {resources 3}"}, 0},
		{`[{}]`, nil, 0},
		{`[{"CPU": -1}, {"CPU": "x"}, 7, {"CPU": 2}]`, []string{"1 x {CPU 2}"}, 3},
		{`{"CPU": 1}`, nil, 1},
		{`[{"CPU": 1`, nil, 1},
		{"[" + strings.Repeat("{},", maxSDKRequest/3) + `{"CPU": 1}]`, nil, 1},
	}
	for _, test := range tests {
		d := &decoder{}
		var got []string
		for _, r := range d.sdkRequest([]byte(test.text)) {
			got = append(got, requestText(r))
		}
		if diff := cmp.Diff(test.want, got); diff != "" || len(d.findings) != test.findings {
			t.Errorf("%.80s (-want +got):\n%s%+v", test.text, diff, d.findings)
		}
	}
}

// TestHeadIsAskedForItsKindOncePerSession counts the calls of three reads, and of one after the head restarts.
func TestHeadIsAskedForItsKindOncePerSession(t *testing.T) {
	r := newReplay(t)
	r.set("InternalKVGet", replyOf(t, &raypb.InternalKVGetReply{Value: []byte("1")}))
	client := dial(t, r)
	for i, reading := range []struct {
		session string
		version int64
		kvCalls int
	}{{"s1", 10, 1}, {"s1", 11, 1}, {"s2", 1, 2}, {"s2", 9, 2}, {"s2", 3, 3}} {
		r.set("GetClusterResourceState", replyOf(t, &autoscalerpb.GetClusterResourceStateReply{ClusterResourceState: &autoscalerpb.ClusterResourceState{
			ClusterSessionName: reading.session, ClusterResourceStateVersion: reading.version,
		}}))
		got, err := client.State(t.Context())
		if err != nil || got.Session != reading.session || got.Version != reading.version {
			t.Fatalf("reading %d: %+v, %v", i, got, err)
		}
		if calls := len(r.called("InternalKVGet")); calls != reading.kvCalls {
			t.Errorf("after reading %d: %d calls, want %d", i, calls, reading.kvCalls)
		}
	}
	for _, call := range r.called("GetClusterResourceState") {
		if len(call.request) != 0 {
			t.Errorf("request %x carries a version: one ahead of the counter kills the GCS", call.request)
		}
	}
}

// TestHeadThatHasNotWrittenItsKindIsAskedAgain reads a head before and after it writes its autoscaler flag.
func TestHeadThatHasNotWrittenItsKindIsAskedAgain(t *testing.T) {
	r := newReplay(t)
	r.set("GetClusterResourceState", replyOf(t, &autoscalerpb.GetClusterResourceStateReply{ClusterResourceState: &autoscalerpb.ClusterResourceState{
		ClusterSessionName: "s1", ClusterResourceStateVersion: 1,
		ClusterResourceConstraints: []*autoscalerpb.ClusterResourceConstraint{
			{ResourceRequests: []*autoscalerpb.ResourceRequestByCount{wireShape(1, map[string]float64{"GPU": 1})}},
		},
	}}))
	r.set("InternalKVGet", replyOf(t, &raypb.InternalKVGetReply{Status: &raypb.GcsStatus{Code: codeNotFound}}))
	client := dial(t, r)
	if _, err := client.State(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.set("InternalKVGet", replyOf(t, &raypb.InternalKVGetReply{Value: []byte("1")}))
	state, err := client.State(t.Context())
	if err != nil || len(state.Demand.Constraint) != 1 {
		t.Errorf("request_resources %+v, %v: once the head says that it is v2, the constraint counts", state.Demand.Constraint, err)
	}
}

func TestNodeTableIsReadOnlyForUnknownNodesWithoutLabels(t *testing.T) {
	for version, want := range map[string]int{"2.40.0": 1, "2.60.0": 0} {
		r := headOf(t, version, "idle-1")
		client := dial(t, r)
		for range 3 {
			state, err := client.State(t.Context())
			must(t, err)
			for _, n := range state.Nodes {
				if !n.Head && n.Labels["zone"] == "" {
					t.Errorf("%s: %s has no zone", version, n.Instance)
				}
			}
		}
		if calls := r.called("GetAllNodeInfo"); len(calls) != want || want > 0 && len(calls[0].request) != 0 {
			t.Errorf("%s: %d node table calls, want %d with an empty request", version, len(calls), want)
		}
	}
}

// FuzzState decodes random replies. It expects no panic, no negative amount, and a limit on the length of text.
func FuzzState(f *testing.F) {
	for _, version := range versions {
		for _, e := range manifest(f, version) {
			if e.Code == "OK" && e.Path == "/ray.rpc.autoscaler.AutoscalerStateService/GetClusterResourceState" {
				f.Add(recordedAnswer(f, version, e.File).reply, []byte(`[{"CPU": 1}]`))
			}
		}
	}
	f.Fuzz(func(t *testing.T, reply, request []byte) {
		var wire autoscalerpb.GetClusterResourceStateReply
		if proto.Unmarshal(reply, &wire) != nil {
			return
		}
		for _, b := range []beside{{}, {v1: true, sdkRequest: request}} {
			d := &decoder{}
			state := d.state(wire.GetClusterResourceState(), b)
			if len(state.Findings) > maxFindings+1 {
				t.Fatalf("%d findings", len(state.Findings))
			}
			for _, n := range state.Nodes {
				if n.Idle < 0 || n.Idle%time.Millisecond != 0 {
					t.Fatalf("idle time %v", n.Idle)
				}
				checkBundles(t, n.Available, n.Total)
			}
			for _, r := range append(state.Demand.Requests, state.Demand.Constraint...) {
				if r.Count < 1 {
					t.Fatalf("count %d", r.Count)
				}
				checkBundles(t, r.Bundle)
			}
			for _, g := range state.Demand.Gangs {
				if len(g.Bundles) == 0 || !g.Strategy.Valid() || len(g.BundleSelectors) > 0 && len(g.BundleSelectors) != len(g.Bundles) {
					t.Fatalf("gang %+v", g)
				}
				checkBundles(t, g.Bundles...)
			}
			demandText(state.Demand)
		}
	})
}

func checkBundles(t *testing.T, bundles ...raydemand.Bundle) {
	t.Helper()
	for _, b := range bundles {
		for name, amount := range b {
			if amount < 0 {
				t.Fatalf("%s is %s", name, amount)
			}
		}
	}
}
