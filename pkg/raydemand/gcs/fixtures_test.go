package gcs

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
)

// TestDemandOfRecordedStates checks the demand of each recorded state, by version of Ray where versions differ.
func TestDemandOfRecordedStates(t *testing.T) {
	const trainPack = "[{CPU 1, GPU 4} {CPU 1, GPU 4} {CPU 2}]"
	tests := []struct {
		state string
		on    string // versions; empty means all that recorded the state
		want  []string
	}{
		{state: "idle-1"},
		{state: "busy-task"},
		{state: "pending-gpu-whole", want: []string{"request 3 x {CPU 1, GPU 8}"}},
		{state: "pending-tasks-shapes", want: []string{
			"request 4 x {CPU 64}",
			"request 3 x {CPU 1, GPU 4}",
			"request 2 x {CPU 1, GPU 1, accelerator_type:H100 0.001}",
			"request 1 x {CPU 1, memory 68719476736}",
			"request 5 x {GPU 0.5, nope 1}",
			"request 7 x {special 2.5}",
		}},
		{state: "pending-actors", want: []string{
			"request 2 x {CPU 1, GPU 8}", "request 3 x {CPU 1, GPU 0.5, nope 1}", "request 1 x {special 1}",
		}},
		{state: "pending-tasks-selector", on: "2.52.0", want: []string{
			"request 2 x {CPU 1, GPU 1} where gen=in(a,b) old=!in(x,y) tier=!spot zone=us-1",
			"request 3 x {CPU 1} where ray.io/accelerator-type=H100",
		}},
		{state: "pending-tasks-selector-in", want: []string{"request 20 x {CPU 1, GPU 1} where zone=in(us-1,us-2,us-3)"}},
		{state: "pending-tasks-fallback", on: "2.52.0", want: []string{"request 4 x {CPU 1} where zone=us-1"}},
		{state: "pending-tasks-fallback", on: "2.60.0", want: []string{
			"request 4 x {CPU 1} where zone=us-1 else zone=us-2 else tier=!spot zone=in(us-3,us-4)",
		}},
		{state: "pg-pack", want: []string{"gang PACK " + trainPack}},
		{state: "pg-spread", want: []string{"gang SPREAD " + trainPack}},
		{state: "pg-strict-pack", want: []string{"gang STRICT_PACK " + trainPack}},
		{state: "pg-strict-spread", want: []string{"gang STRICT_SPREAD " + trainPack}},
		{state: "pg-pending-with-task", want: []string{"gang PACK [{CPU 1, GPU 4} {CPU 1, GPU 4}]"}},
		{state: "pg-created"},
		{state: "pg-rescheduling", want: []string{"gang STRICT_SPREAD [{CPU 1, GPU 1}]"}},
		{state: "pg-bundle-selector", want: []string{
			"gang STRICT_SPREAD [{CPU 1, GPU 1} {CPU 1, GPU 1}] where [zone=us-1 tier=!spot zone=in(us-2,us-3)]",
		}},
		{state: "pg-topology", want: []string{"gang PACK [{CPU 1, GPU 4} {CPU 1, GPU 4}] on one ray.io/gpu-domain"}},
		{state: "request-resources", on: "2.40.0 2.52.0", want: []string{
			"at least 4 x {CPU 1}", "at least 1 x {CPU 2, GPU 1}", "at least 2 x {GPU 1}",
		}},
		{state: "request-resources", on: "2.60.0", want: []string{
			"at least 4 x {CPU 1}", "at least 1 x {CPU 2, GPU 0.5}", "at least 2 x {GPU 1}",
		}},
		{state: "request-resources-cleared"},
		{state: "request-resources-selector", want: []string{"at least 1 x {CPU 2}", "at least 2 x {GPU 1} where zone=us-1"}},
		{state: "v1-request-resources", on: "2.40.0 2.52.0", want: []string{
			"at least 4 x {CPU 1}", "at least 1 x {CPU 2, GPU 1}", "at least 2 x {GPU 1}",
		}},
		{state: "v1-request-resources", on: "2.60.0", want: []string{
			"at least 4 x {CPU 1}", "at least 1 x {CPU 2, GPU 0.5}", "at least 2 x {GPU 1}",
		}},
		{state: "v1-request-resources-cleared"},
		{state: "v1-constraint-by-rpc"}, // ray status on a v1 head ignores it too
		{state: "v1-pending", want: []string{"request 3 x {CPU 1, GPU 4}", "gang STRICT_SPREAD [{CPU 1, GPU 4} {CPU 1, GPU 4}]"}},
		{state: "default-head-request-resources", want: []string{"at least 2 x {CPU 1}", "at least 1 x {GPU 1}"}},
	}
	for _, test := range tests {
		ran := false
		for _, version := range versions {
			if !recordedState(t, version, test.state) || test.on != "" && !strings.Contains(test.on, version) {
				continue
			}
			ran = true
			t.Run(version+" "+test.state, func(t *testing.T) {
				state := readState(t, version, test.state)
				want := slices.Clone(test.want)
				got := strings.Split(demandText(state.Demand), "\n")
				if len(want) == 0 {
					want = []string{""}
				}
				slices.Sort(want)
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("demand (-want +got):\n%s", diff)
				}
				if len(state.Findings) > 0 || state.Truncated {
					t.Errorf("truncated %v, findings %+v", state.Truncated, state.Findings)
				}
			})
		}
		if !ran {
			t.Errorf("no version recorded %s", test.state)
		}
	}
}

func recordedState(t *testing.T, version, state string) bool {
	return slices.ContainsFunc(manifest(t, version), func(e entry) bool {
		return e.File == state+".GetClusterResourceState.binpb"
	})
}

// TestNodesOfRecordedStates checks the status of each node in the recorded states.
func TestNodesOfRecordedStates(t *testing.T) {
	const (
		head  = "demo-head-x7k2p "
		gpuA  = "demo-gpu-t4-worker-a1b2c "
		gpuD  = "demo-gpu-t4-worker-d3e4f "
		gpuK  = "demo-gpu-t4-worker-k7m8n "
		cpuG  = "demo-cpu-worker-g5h6j "
		cpuP  = "demo-cpu-worker-p9q1r "
		idle  = "IDLE"
		runs  = "RUNNING"
		drain = "DRAINING"
		dead  = "DEAD"
	)
	tests := []struct {
		version, state string
		want           []string
	}{
		{"2.60.0", "head-only", []string{head + runs}},
		{"2.40.0", "head-idle", []string{head + idle}},
		{"2.40.0", "idle-1", []string{cpuG + idle, gpuA + idle, gpuD + idle, head + idle}},
		{"2.52.0", "idle-2", []string{cpuG + idle, gpuA + idle, gpuD + idle, head + idle}},
		{"2.60.0", "idle-2", []string{cpuG + idle, gpuA + idle, gpuD + idle, head + idle}},
		{"2.52.0", "busy-actor-zero-cpu", []string{cpuG + runs, gpuA + idle, gpuD + idle, head + idle}},
		{"2.40.0", "busy-object", []string{cpuG + runs, gpuA + idle, gpuD + idle, head + idle}},
		{"2.52.0", "draining-busy", []string{cpuG + idle, gpuA + idle, gpuD + drain, head + idle}},
		{"2.52.0", "replaced", []string{cpuG + dead, cpuP + idle, gpuA + idle, gpuD + dead, gpuK + idle, head + idle}},
		{"2.60.0", "same-pod-new-node", nil},
	}
	for _, test := range tests {
		t.Run(test.version+" "+test.state, func(t *testing.T) {
			state := readState(t, test.version, test.state)
			var got []string
			byPod := map[string]int{}
			for _, n := range state.Nodes {
				got = append(got, n.Instance+" "+string(n.Status))
				byPod[n.Instance]++
				if (n.Status == "IDLE") != (n.Idle > 0) {
					t.Errorf("%s is %s with idle time %v", n.Instance, n.Status, n.Idle)
				}
				if n.Head != (n.Group == "headgroup") {
					t.Errorf("%s of group %s: head %v", n.Instance, n.Group, n.Head)
				}
				if n.Status != "DEAD" && n.Labels["ray.io/node-id"]+n.Labels["ray.io/node_id"] != n.ID.String() {
					t.Errorf("%s (%s) has labels %v", n.Instance, n.ID, n.Labels)
				}
			}
			if test.want == nil {
				if byPod["demo-gpu-t4-worker-k7m8n"] != 2 {
					t.Errorf("nodes %v: want two entries for the restarted pod", got)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorkerHasResourcesLabelsAndPlacedGangs(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			for _, n := range readState(t, version, "pg-created").Nodes {
				if n.Group != "gpu-t4" {
					continue
				}
				if got := n.Total["GPU"].String() + " " + n.Available["GPU"].String() + " " + n.Total["CPU"].String(); got != "1 0 4" {
					t.Errorf("%s: total GPU, available GPU, total CPU = %s, want 1 0 4", n.Instance, got)
				}
				if n.Labels["zone"] == "" {
					t.Errorf("%s has no label zone: %v", n.Instance, n.Labels)
				}
				if len(n.PlacedLabels) != 1 {
					t.Errorf("%s: placed labels %v, want that of the created group", n.Instance, n.PlacedLabels)
				}
				for name := range n.Total {
					if isPlacementGroupResource(name) {
						t.Errorf("%s lists %s", n.Instance, name)
					}
				}
			}
		})
	}
}

func TestHundredShapesAreAFindingWithItsFix(t *testing.T) {
	for _, version := range versions {
		if !recordedState(t, version, "over-100-shapes") {
			continue
		}
		state := readState(t, version, "over-100-shapes")
		if !state.Truncated || len(state.Demand.Requests) != 100 {
			t.Errorf("%s: truncated %v with %d shapes", version, state.Truncated, len(state.Demand.Requests))
		}
		if len(state.Findings) != 1 || state.Findings[0].Code != FindingTruncated || state.Findings[0].Fix == "" {
			t.Errorf("%s: findings %+v", version, state.Findings)
		}
	}
}

// TestEveryRecordedStateDecodesWhole checks that every recorded state decodes without a finding and has no field that
// is missing in the generated protos.
func TestEveryRecordedStateDecodesWhole(t *testing.T) {
	total := 0
	for _, version := range versions {
		for _, e := range manifest(t, version) {
			if path.Base(e.Path) != "GetClusterResourceState" || e.Code != "OK" {
				continue
			}
			total++
			var reply autoscalerpb.GetClusterResourceStateReply
			if err := proto.Unmarshal(recordedAnswer(t, version, e.File).reply, &reply); err != nil {
				t.Fatalf("%s %s: %v", version, e.File, err)
			}
			if unknown := unknownFields(reply.ProtoReflect(), ""); len(unknown) > 0 {
				t.Errorf("%s %s: unknown fields in %v", version, e.File, unknown)
			}
			d := &decoder{}
			state := d.state(reply.GetClusterResourceState(), beside{})
			if len(state.Nodes) != len(reply.GetClusterResourceState().GetNodeStates()) || state.Session == "" || state.Version == 0 {
				t.Errorf("%s %s: %d nodes, session %q, version %d", version, e.File, len(state.Nodes), state.Session, state.Version)
			}
			if !state.Truncated && len(state.Findings) > 0 {
				t.Errorf("%s %s: findings %+v", version, e.File, state.Findings)
			}
		}
	}
	if total < 100 {
		t.Errorf("only %d recorded states found", total)
	}
}

func unknownFields(m protoreflect.Message, at string) []string {
	found := map[string]bool{}
	if len(m.GetUnknown()) > 0 {
		found[at+string(m.Descriptor().Name())] = true
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		var below []protoreflect.Message
		switch {
		case field.IsMap() || field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				below = append(below, value.List().Get(i).Message())
			}
		default:
			below = append(below, value.Message())
		}
		for _, b := range below {
			for _, name := range unknownFields(b, fmt.Sprintf("%s%s.", at, m.Descriptor().Name())) {
				found[name] = true
			}
		}
		return true
	})
	return slices.Sorted(maps.Keys(found))
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
