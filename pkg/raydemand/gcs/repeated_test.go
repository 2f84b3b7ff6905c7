package gcs

import (
	"math/rand/v2"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// eachRecordedState calls f with each state that was recorded from a real head.
func eachRecordedState(t *testing.T, f func(name string, reply *autoscalerpb.GetClusterResourceStateReply)) {
	t.Helper()
	count := 0
	for _, version := range versions {
		for _, e := range manifest(t, version) {
			if path.Base(e.Path) != "GetClusterResourceState" || e.Code != "OK" {
				continue
			}
			reply := &autoscalerpb.GetClusterResourceStateReply{}
			must(t, proto.Unmarshal(recordedAnswer(t, version, e.File).reply, reply))
			count++
			f(version+" "+e.File, reply)
		}
	}
	if count < 50 {
		t.Errorf("only %d recorded states", count)
	}
}

func scanned(t *testing.T, reply *autoscalerpb.GetClusterResourceStateReply) scan {
	t.Helper()
	wire, err := proto.Marshal(reply) // maps get another order each time
	must(t, err)
	s, ok := scanState(wire, map[raydemand.NodeID]int64{})
	if !ok {
		t.Fatal("a recorded state is not as Ray writes it")
	}
	return s
}

func TestVersionsIdleTimesAndOrdersOfMapsDoNotChangeAFingerprint(t *testing.T) {
	eachRecordedState(t, func(name string, reply *autoscalerpb.GetClusterResourceStateReply) {
		before := scanned(t, reply)
		state := reply.GetClusterResourceState()
		state.ClusterResourceStateVersion += 7
		state.LastSeenAutoscalerStateVersion += 3
		for _, n := range state.GetNodeStates() {
			n.NodeStateVersion += 7
			n.IdleDurationMs += 1000
		}
		rand.Shuffle(len(state.GetNodeStates()), func(i, j int) {
			nodes := state.GetNodeStates()
			nodes[i], nodes[j] = nodes[j], nodes[i]
		})
		after := scanned(t, reply)
		if before.fingerprint != after.fingerprint {
			t.Errorf("%s: the fingerprint differs", name)
		}
		if after.version != before.version+7 || len(after.idle) != len(state.GetNodeStates()) {
			t.Errorf("%s: version %d and %d idle times", name, after.version, len(after.idle))
		}
		for _, n := range state.GetNodeStates() {
			if got := after.idle[raydemand.NodeID(n.GetNodeId())]; got != n.GetIdleDurationMs() {
				t.Errorf("%s: node %x was idle for %d ms, want %d", name, n.GetNodeId(), got, n.GetIdleDurationMs())
			}
		}
	})
}

// TestEveryOtherFieldChangesTheFingerprint changes each value in each recorded state, one at a time.
func TestEveryOtherFieldChangesTheFingerprint(t *testing.T) {
	ignored := map[protoreflect.FullName]bool{
		"ray.rpc.autoscaler.ClusterResourceState.cluster_resource_state_version":     true,
		"ray.rpc.autoscaler.ClusterResourceState.last_seen_autoscaler_state_version": true,
		"ray.rpc.autoscaler.NodeState.node_state_version":                            true,
		"ray.rpc.autoscaler.NodeState.idle_duration_ms":                              true,
	}
	changes := 0
	eachRecordedState(t, func(name string, reply *autoscalerpb.GetClusterResourceStateReply) {
		if changes > 5000 {
			return
		}
		before := scanned(t, reply).fingerprint
		var visit func(m protoreflect.Message)
		check := func(what protoreflect.FullName) {
			changes++
			if scanned(t, reply).fingerprint == before {
				t.Errorf("%s: another %s has the same fingerprint", name, what)
			}
		}
		visit = func(m protoreflect.Message) {
			m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
				switch {
				case ignored[field.FullName()]:
				case field.IsMap():
					value.Map().Range(func(key protoreflect.MapKey, inner protoreflect.Value) bool {
						value.Map().Set(key, other(inner))
						check(field.FullName())
						value.Map().Set(key, inner)
						return true
					})
				case field.IsList():
					list := value.List()
					for i := range list.Len() {
						if field.Message() != nil {
							visit(list.Get(i).Message())
							continue
						}
						inner := list.Get(i)
						list.Set(i, other(inner))
						check(field.FullName())
						list.Set(i, inner)
					}
					if field.Message() != nil && list.Len() > 0 {
						list.AppendMutable()
						check(field.FullName())
						list.Truncate(list.Len() - 1)
					}
				case field.Message() != nil:
					visit(value.Message())
				default:
					m.Set(field, other(value))
					check(field.FullName())
					m.Set(field, value)
				}
				return true
			})
		}
		visit(reply.GetClusterResourceState().ProtoReflect())
	})
	if changes < 500 {
		t.Errorf("only %d changes", changes)
	}
}

// other returns another value of the same kind.
func other(v protoreflect.Value) protoreflect.Value {
	switch value := v.Interface().(type) {
	case string:
		return protoreflect.ValueOfString(value + "x")
	case []byte:
		return protoreflect.ValueOfBytes(append([]byte("x"), value[min(1, len(value)):]...))
	case float64:
		return protoreflect.ValueOfFloat64(value + 1)
	case int64:
		return protoreflect.ValueOfInt64(value + 1)
	case int32:
		return protoreflect.ValueOfInt32(value + 1)
	case bool:
		return protoreflect.ValueOfBool(!value)
	case protoreflect.EnumNumber:
		return protoreflect.ValueOfEnum(value + 1)
	}
	return v
}

// TestARepeatedStateIsTheStateWithNewIdleTimes reads each recorded state again with other idle times, and compares with
// what a client reads that has no state before.
func TestARepeatedStateIsTheStateWithNewIdleTimes(t *testing.T) {
	eachRecordedState(t, func(name string, reply *autoscalerpb.GetClusterResourceStateReply) {
		r := newReplay(t)
		set := func() {
			r.set("GetClusterResourceState", replyOf(t, reply))
		}
		r.set("InternalKVGet", replyOf(t, &raypb.InternalKVGetReply{Value: []byte("1")}))
		r.set("GetAllNodeInfo", replyOf(t, &raypb.GetAllNodeInfoReply{}))
		client := dial(t, r)
		set()
		first, err := client.State(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		reply.ClusterResourceState.ClusterResourceStateVersion++
		for i, n := range reply.GetClusterResourceState().GetNodeStates() {
			n.IdleDurationMs += int64(1000 * (1 + i))
		}
		set()
		got, err := client.State(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := dial(t, r).State(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.Fingerprint != first.Fingerprint || got.Fingerprint == 0 {
			t.Errorf("%s: fingerprints %x and %x", name, first.Fingerprint, got.Fingerprint)
		}
		for _, known := range []uint64{first.Fingerprint, first.Fingerprint + 1} {
			reply.ClusterResourceState.ClusterResourceStateVersion++
			set()
			again, err := client.Repeats(t.Context(), known)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if bare := again.Nodes == nil; bare != (known == first.Fingerprint) || again.Fingerprint != first.Fingerprint ||
				again.Version != reply.GetClusterResourceState().GetClusterResourceStateVersion() {
				t.Errorf("%s: known %x, read %x of version %d, without nodes: %t", name, known, again.Fingerprint, again.Version, bare)
			}
		}
	})
}

// TestRequestResourcesOfAV1HeadAreSeenBesideARepeatedState changes what only the KV store has.
func TestRequestResourcesOfAV1HeadAreSeenBesideARepeatedState(t *testing.T) {
	r := headOf(t, "2.52.0", "v1-request-resources")
	client := dial(t, r)
	before, err := client.State(t.Context())
	must(t, err)
	var reply autoscalerpb.GetClusterResourceStateReply
	must(t, proto.Unmarshal(r.answers["GetClusterResourceState"].reply, &reply))
	reply.ClusterResourceState.ClusterResourceStateVersion++
	r.set("GetClusterResourceState", replyOf(t, &reply))
	again, err := client.State(t.Context())
	if err != nil || again.Fingerprint != before.Fingerprint || len(before.Demand.Constraint) == 0 {
		t.Fatalf("%v: fingerprints %x and %x; want a repeated state with request_resources", err, before.Fingerprint, again.Fingerprint)
	}
	for key := range r.answers {
		if len(key) > len("InternalKVGet ") {
			delete(r.answers, key)
		}
	}
	reply.ClusterResourceState.ClusterResourceStateVersion++
	r.set("GetClusterResourceState", replyOf(t, &reply))
	r.set("InternalKVGet", answer{}) // the flag is kept, and the request is gone
	gone, err := client.State(t.Context())
	if err != nil || len(gone.Demand.Constraint) > 0 {
		t.Errorf("%v: %v is still requested", err, gone.Demand.Constraint)
	}
}
