package gcs

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
)

// maxElements is the maximum number of messages, map entries and strings in one reply. An empty element takes 2 bytes
// on the wire and up to 100 bytes in memory, so 64 MiB of them could use up the memory of the process, which serves the
// whole fleet. A node has about 60 elements and a shape 10. The limit allows 20,000 nodes, several times the largest
// known Ray cluster.
const maxElements = 1_500_000

// decodeReply counts the elements of a reply before it decodes the reply. It does not decode a state that repeats the
// one before.
func decodeReply(wire []byte, v any) error {
	if reply, is := v.(*stateReply); is {
		if reply.repeats(wire) {
			return nil
		}
		reply.message = &autoscalerpb.GetClusterResourceStateReply{}
		v = reply.message
	}
	message, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("decoding a reply: %T is no message", v)
	}
	left := maxElements
	if err := countElements(wire, message.ProtoReflect().Descriptor(), &left); err != nil {
		return err
	}
	if err := proto.Unmarshal(wire, message); err != nil {
		return fmt.Errorf("decoding a reply: %w", err)
	}
	return nil
}

// countElements subtracts from left the number of elements that bytes contains. It ignores invalid protobuf, which the
// decoder rejects.
func countElements(bytes []byte, message protoreflect.MessageDescriptor, left *int) error {
	for len(bytes) > 0 {
		number, kind, n := protowire.ConsumeTag(bytes)
		if n < 0 {
			return nil
		}
		bytes = bytes[n:]
		n = protowire.ConsumeFieldValue(number, kind, bytes)
		if n < 0 {
			return nil
		}
		field := message.Fields().ByNumber(number)
		if field != nil && kind == protowire.BytesType {
			if *left--; *left < 0 {
				return fmt.Errorf("decoding a reply: it has more than %d elements", maxElements)
			}
			if field.Message() != nil {
				value, _ := protowire.ConsumeBytes(bytes)
				if err := countElements(value, field.Message(), left); err != nil {
					return err
				}
			}
		}
		bytes = bytes[n:]
	}
	return nil
}
