package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// message is what a subscriber got.
type message struct {
	at       time.Time
	channel  string // without GCS_, RAY_ and _CHANNEL
	state    string // of an actor or a node
	sequence int64
	size     int
}

// subscriber is a subscriber of one pub/sub service. It acknowledges messages with the next poll.
type subscriber struct {
	conn      *grpc.ClientConn
	wire      wire
	id        []byte
	publisher []byte
	processed int64

	mu   sync.Mutex // guards seen
	seen []message
}

// newSubscriber returns a subscriber with an ID of its own. The ID has 28 bytes: a head ends at any other length.
func newSubscriber(conn *grpc.ClientConn, w wire) *subscriber {
	id := make([]byte, 28)
	_, _ = rand.Read(id) // it never fails
	return &subscriber{conn: conn, wire: w, id: id}
}

// subscribeAll subscribes to all channels of the service.
func (s *subscriber) subscribeAll(ctx context.Context) error {
	values := s.wire.channels.Values()
	for i := range values.Len() {
		if name := values.Get(i).Name(); s.wire.has(name) {
			if err := s.subscribe(ctx, values.Get(i).Number()); err != nil {
				return fmt.Errorf("subscribing to %s: %w", name, err)
			}
		}
	}
	return nil
}

// subscribe subscribes to all messages of the channel with that number.
func (s *subscriber) subscribe(ctx context.Context, channel protoreflect.EnumNumber) error {
	request := dynamicpb.NewMessage(s.wire.batch.Input())
	set(request, "subscriber_id", s.id)
	commands := request.Mutable(request.Descriptor().Fields().ByName("commands")).List()
	command := commands.AppendMutable().Message()
	set(command, "channel_type", channel)
	command.Mutable(command.Descriptor().Fields().ByName("subscribe_message"))
	_, err := call(ctx, s.conn, s.wire.batch, request)
	return err
}

// poll waits for the next messages. An empty result without an error is the head's sign of life, which also ends a poll
// when the same subscriber polls twice.
func (s *subscriber) poll(ctx context.Context) ([]message, error) {
	request := dynamicpb.NewMessage(s.wire.poll.Input())
	set(request, "subscriber_id", s.id)
	set(request, "max_processed_sequence_id", s.processed)
	set(request, "publisher_id", s.publisher)
	reply, err := call(ctx, s.conn, s.wire.poll, request)
	if err != nil {
		return nil, fmt.Errorf("polling: %w", err)
	}
	now := time.Now()
	s.publisher = get(reply, "publisher_id").Bytes()
	var got []message
	list := get(reply, "pub_messages").List()
	for i := range list.Len() {
		m := read(list.Get(i).Message(), now)
		s.processed = max(s.processed, m.sequence)
		got = append(got, m)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, got...)
	return got, nil
}

// run polls until ctx ends or a poll fails.
func (s *subscriber) run(ctx context.Context) error {
	for {
		if _, err := s.poll(ctx); err != nil {
			return err
		}
	}
}

// between returns what arrived in a span of time.
func (s *subscriber) between(begin, end time.Time) []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []message
	for _, m := range s.seen {
		if !m.at.Before(begin) && !m.at.After(end) {
			found = append(found, m)
		}
	}
	return found
}

// withState are the messages whose state is of interest.
var withState = []protoreflect.Name{"actor_message", "node_info_message", "node_address_and_liveness_message"}

// read reads a message of any channel.
func read(m protoreflect.Message, at time.Time) message {
	channel := m.Descriptor().Fields().ByName("channel_type").Enum().Values().ByNumber(get(m, "channel_type").Enum())
	got := message{at: at, sequence: get(m, "sequence_id").Int(), size: proto.Size(m.Interface())}
	if channel != nil {
		got.channel = short(string(channel.Name()))
	}
	for _, name := range withState {
		field := m.Descriptor().Fields().ByName(name)
		if field == nil || !m.Has(field) {
			continue
		}
		inner := m.Get(field).Message()
		state := inner.Descriptor().Fields().ByName("state")
		got.state = string(state.Enum().Values().ByNumber(inner.Get(state).Enum()).Name())
	}
	return got
}

func short(channel string) string {
	channel = strings.TrimSuffix(channel, "_CHANNEL")
	return strings.TrimPrefix(strings.TrimPrefix(channel, "GCS_"), "RAY_")
}

func (m message) String() string {
	if m.state == "" {
		return m.channel
	}
	return m.channel + " " + m.state
}
