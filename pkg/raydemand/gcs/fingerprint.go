package gcs

import (
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// seed is that of all fingerprints of this process, so that no head can choose replies with equal ones.
var seed = maphash.MakeSeed()

// scan is what one pass over the wire form of a state finds, without decoding it.
type scan struct {
	// fingerprint is equal for states that differ only in versions, in idle times, and in the order of map entries and
	// of nodes: Ray's maps have a random order in each reply.
	fingerprint uint64
	version     int64
	// nodes is how many there are.
	nodes int
	// idle are their idle times in milliseconds; nil if these are of no use.
	idle map[raydemand.NodeID]int64
}

// scanState scans the wire form of a GetClusterResourceStateReply, and adds the idle times to idle, unless that is nil.
// It reports false if the form is not as Ray writes it; then only the decoder can say what it means.
func scanState(reply []byte, idle map[raydemand.NodeID]int64) (scan, bool) {
	number, kind, n := protowire.ConsumeTag(reply)
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return scan{}, false
	}
	state, m := protowire.ConsumeBytes(reply[n:])
	if m < 0 || n+m != len(reply) { // a second state would be merged into the first one
		return scan{}, false
	}
	s := scan{idle: idle}
	sum, ok := s.state(state)
	s.fingerprint = sum
	return s, ok && sum != 0
}

// state adds up the fields of a ClusterResourceState.
func (s *scan) state(wire []byte) (uint64, bool) {
	var h sums
	ok := eachField(wire, func(f field) bool {
		switch f.number {
		case stateVersion:
			s.version = int64(f.varint)
			return f.kind == protowire.VarintType
		case autoscalerVersion:
			return true
		case nodeStates:
			sum, ok := s.node(f.bytes)
			h.unordered(f.number, sum)
			return ok && f.kind == protowire.BytesType && s.nodes <= maxNodes
		}
		return h.add(f, stateForm)
	})
	return h.total(), ok
}

// node adds up the fields of a NodeState, and keeps its idle time.
func (s *scan) node(wire []byte) (uint64, bool) {
	var h sums
	var id raydemand.NodeID
	var idle int64
	ok := eachField(wire, func(f field) bool {
		switch f.number {
		case nodeVersion:
			return true
		case nodeIdle:
			idle = int64(f.varint)
			return f.kind == protowire.VarintType
		case nodeID:
			copy(id[:], f.bytes)
		}
		return h.add(f, nodeForm)
	})
	if s.nodes++; s.idle != nil {
		s.idle[id] = idle
	}
	return h.total(), ok
}

// Numbers of fields that fingerprints treat in a special way.
const (
	stateVersion      = 1 // ClusterResourceState.cluster_resource_state_version
	autoscalerVersion = 2 // ClusterResourceState.last_seen_autoscaler_state_version
	nodeStates        = 3 // ClusterResourceState.node_states
	nodeID            = 1 // NodeState.node_id
	nodeVersion       = 7 // NodeState.node_state_version
	nodeIdle          = 9 // NodeState.idle_duration_ms
)

// form says how the fields of a message count. Entries of a map count in any order.
type form struct {
	inMap  [32]bool
	inside [32]*form // nil for plain values
}

var (
	stateForm = formOf((*autoscalerpb.ClusterResourceState)(nil).ProtoReflect().Descriptor(), map[string]*form{})
	nodeForm  = formOf((*autoscalerpb.NodeState)(nil).ProtoReflect().Descriptor(), map[string]*form{})
)

func formOf(message protoreflect.MessageDescriptor, known map[string]*form) *form {
	name := string(message.FullName())
	if f := known[name]; f != nil {
		return f
	}
	f := &form{}
	known[name] = f
	for i := range message.Fields().Len() {
		switch field := message.Fields().Get(i); {
		case int(field.Number()) >= len(f.inMap): // counts as a plain value
		case field.IsMap():
			f.inMap[field.Number()] = true
		case field.Message() != nil:
			f.inside[field.Number()] = formOf(field.Message(), known)
		}
	}
	return f
}

// sums add up the fields of one message: those whose order counts, and those whose order does not.
type sums struct{ inOrder, inAnyOrder uint64 }

// add adds a field, and reports false if it is no valid protobuf.
func (h *sums) add(f field, in *form) bool {
	known := int(f.number) < len(in.inMap)
	switch {
	case known && in.inMap[f.number]:
		h.unordered(f.number, maphash.Bytes(seed, f.bytes))
	case known && in.inside[f.number] != nil:
		var inside sums
		if !eachField(f.bytes, func(inner field) bool { return inside.add(inner, in.inside[f.number]) }) {
			return false
		}
		h.ordered(f.number, inside.total())
	case f.kind == protowire.BytesType:
		h.ordered(f.number, maphash.Bytes(seed, f.bytes))
	default:
		h.ordered(f.number, mixed(f.varint))
	}
	return true
}

func (h *sums) ordered(number protowire.Number, sum uint64) {
	h.inOrder = mixed(h.inOrder ^ mixed(sum+uint64(number)))
}

func (h *sums) unordered(number protowire.Number, sum uint64) {
	h.inAnyOrder += mixed(sum + uint64(number))
}

func (h *sums) total() uint64 { return mixed(h.inOrder ^ mixed(h.inAnyOrder)) }

// mixed spreads each bit over all bits (the finalizer of SplitMix64). The increment makes it differ from 0 for 0.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// field is one field of the wire form: bytes for strings and messages, varint for all numbers.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	varint uint64
}

// eachField calls visit with each field until it reports false, and reports whether the message is valid.
func eachField(wire []byte, visit func(field) bool) bool {
	for len(wire) > 0 {
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 {
			return false
		}
		f := field{number: number, kind: kind}
		wire = wire[n:]
		switch kind {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(wire)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(wire)
		case protowire.Fixed64Type:
			f.varint, n = protowire.ConsumeFixed64(wire)
		case protowire.Fixed32Type:
			var value uint32
			value, n = protowire.ConsumeFixed32(wire)
			f.varint = uint64(value)
		default:
			return false // groups, which Ray does not use
		}
		if n < 0 || !visit(f) {
			return false
		}
		wire = wire[n:]
	}
	return true
}
