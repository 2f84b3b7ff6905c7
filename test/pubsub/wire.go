package main

//lint:file-ignore SA1019 Ray serves reflection in this version only.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// wire is a head's form of the pub/sub protocol, as the head itself describes it. Ray changes the names of services,
// the numbers of channels and the numbers of fields between releases, so no constant is right for all of them
// (docs/reference/facts.md#publish-and-subscribe).
type wire struct {
	poll, batch protoreflect.MethodDescriptor
	channels    protoreflect.EnumDescriptor
}

// learn returns the pub/sub services of a head, by gRPC server reflection. Ray serves reflection without a token.
func learn(ctx context.Context, conn *grpc.ClientConn) ([]wire, error) {
	stream, err := reflection.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the head for its services: %w", err)
	}
	defer stream.CloseSend() //nolint:errcheck // all answers have been read
	list := &reflection.ServerReflectionRequest_ListServices{}
	answer, err := ask(stream, &reflection.ServerReflectionRequest{MessageRequest: list})
	if err != nil {
		return nil, fmt.Errorf("listing the head's services: %w", err)
	}
	var wires []wire
	for _, service := range answer.GetListServicesResponse().GetService() {
		if !strings.Contains(service.GetName(), "PubSub") {
			continue
		}
		w, err := describe(stream, service.GetName())
		if err != nil {
			return nil, fmt.Errorf("describing service %s: %w", service.GetName(), err)
		}
		wires = append(wires, w)
	}
	if len(wires) == 0 {
		return nil, errors.New("the head has no pub/sub service")
	}
	slices.SortFunc(wires, func(a, b wire) int { return strings.Compare(a.service(), b.service()) })
	return wires, nil
}

func ask(
	stream reflection.ServerReflection_ServerReflectionInfoClient, request *reflection.ServerReflectionRequest,
) (*reflection.ServerReflectionResponse, error) {
	if err := stream.Send(request); err != nil {
		return nil, err
	}
	return stream.Recv()
}

func describe(stream reflection.ServerReflection_ServerReflectionInfoClient, name string) (wire, error) {
	symbol := &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name}
	answer, err := ask(stream, &reflection.ServerReflectionRequest{MessageRequest: symbol})
	if err != nil {
		return wire{}, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	for _, encoded := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
		file := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(encoded, file); err != nil {
			return wire{}, err
		}
		known := func(f *descriptorpb.FileDescriptorProto) bool { return f.GetName() == file.GetName() }
		if !slices.ContainsFunc(set.File, known) { // Ray's server repeats what two services need
			set.File = append(set.File, file)
		}
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return wire{}, err
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return wire{}, err
	}
	channels, err := files.FindDescriptorByName("ray.rpc.ChannelType")
	if err != nil {
		return wire{}, err
	}
	methods := found.(protoreflect.ServiceDescriptor).Methods()
	w := wire{poll: methods.ByName("GcsSubscriberPoll"), batch: methods.ByName("GcsSubscriberCommandBatch"),
		channels: channels.(protoreflect.EnumDescriptor)}
	if w.poll == nil || w.batch == nil {
		return wire{}, errors.New("it has no GcsSubscriberPoll or no GcsSubscriberCommandBatch")
	}
	return w, nil
}

// service returns the name of the service without its package.
func (w wire) service() string { return string(w.poll.Parent().Name()) }

// has reports whether subscribers of this service get a channel. A head ends when it gets a subscription to a channel
// that its publisher does not have, so those between workers are never subscribed to.
func (w wire) has(channel protoreflect.Name) bool {
	observed := slices.Contains([]protoreflect.Name{
		"RAY_ERROR_INFO_CHANNEL", "RAY_LOG_CHANNEL", "RAY_NODE_RESOURCE_USAGE_CHANNEL"}, channel)
	switch w.service() {
	case "ControlPlanePubSubGcsService":
		return strings.HasPrefix(string(channel), "GCS_")
	case "ObservabilityPubSubService":
		return observed
	}
	return observed || strings.HasPrefix(string(channel), "GCS_")
}

// call makes one call with the messages that the head described.
func call(
	ctx context.Context, conn *grpc.ClientConn, method protoreflect.MethodDescriptor, request *dynamicpb.Message,
) (*dynamicpb.Message, error) {
	reply := dynamicpb.NewMessage(method.Output())
	path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	err := conn.Invoke(ctx, path, request, reply)
	return reply, err
}

// set sets a field by its name.
func set(m protoreflect.Message, name protoreflect.Name, value any) {
	m.Set(m.Descriptor().Fields().ByName(name), protoreflect.ValueOf(value))
}

// get returns a field by its name.
func get(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}
