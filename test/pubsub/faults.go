package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"heliostat.dev/heliostat/test/rig"
)

// patience is how long a poll after a fault waits for the message of an actor that has just started.
const patience = 8 * time.Second

// shortTimeout makes a head drop subscribers that have not polled for 3 s instead of Ray's 300 s.
const shortTimeout = "RAY_subscriber_timeout_ms=3000"

// dial returns a connection without Heliostat's options, so that nothing but the protocol is measured.
func dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy())
}

// actors is a subscriber of the actors' channel alone.
func (h *head) actors(ctx context.Context, address string) (*subscriber, error) {
	conn, err := dial(address)
	if err != nil {
		return nil, err
	}
	if h.wires == nil {
		if h.wires, err = learn(ctx, conn); err != nil {
			return nil, err
		}
	}
	s := newSubscriber(conn, h.wires[0])
	return s, s.subscribe(ctx, s.number("GCS_ACTOR_CHANNEL"))
}

// number returns the number of a channel in this version of Ray.
func (s *subscriber) number(channel protoreflect.Name) protoreflect.EnumNumber {
	return s.wire.channels.Values().ByName(channel).Number()
}

// faults prints what a subscriber of actors sees of each fault. The head ends in between, and starts again.
func (h *head) faults(ctx context.Context) error {
	for _, fault := range []struct {
		name string
		try  func(context.Context) (string, error)
	}{
		{"the connection is cut, an actor starts meanwhile", h.cut},
		{"the network drops packets", h.dropped},
		{"nobody polls while 200 actors start", h.slow},
		{"a driver connects between two actors", h.other},
		{"nobody polls for longer than the time-out of subscribers", h.forgotten},
		{"the GCS restarts", h.restarted},
		{"a channel that the GCS does not publish", h.deadly(func(ctx context.Context, s *subscriber) error {
			return s.subscribe(ctx, s.number("WORKER_OBJECT_LOCATIONS_CHANNEL"))
		})},
		{"a subscriber ID of 2 bytes", h.deadly(func(ctx context.Context, s *subscriber) error {
			s.id = []byte{1, 2}
			_, err := s.poll(ctx)
			return err
		})},
		{"a command of an unknown kind", h.deadly(func(ctx context.Context, s *subscriber) error {
			return s.unknownCommand(ctx)
		})},
	} {
		result, err := fault.try(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", fault.name, err)
		}
		fmt.Printf("%s: %s\n", fault.name, result)
	}
	return nil
}

// begin starts an actor by a driver.
func begin(ctx context.Context, d *rig.Driver) error {
	_, _, err := do(ctx, d, rig.Command{Do: "actor"}, "nowhere")
	return err
}

// next polls for the message of an actor that has started.
func (s *subscriber) next(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begin, publisher, signs := time.Now(), s.publisher, 0
	for {
		got, err := s.poll(ctx)
		switch {
		case err != nil:
			return fmt.Sprintf("no message in %s, %d empty replies, publisher %s, %s", patience, signs,
				same(publisher, s.publisher), status.Code(err))
		case len(got) > 0:
			return fmt.Sprintf("%d messages after %.1f s, publisher %s", len(got), time.Since(begin).Seconds(),
				same(publisher, s.publisher))
		}
		signs++
	}
}

// drain polls until nothing has come for a second.
func (s *subscriber) drain(ctx context.Context) {
	for {
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		_, err := s.poll(bounded)
		cancel()
		if err != nil {
			return // its deadline; another error shows in the next poll
		}
	}
}

func same(before, after []byte) string {
	if bytes.Equal(before, after) {
		return "unchanged"
	}
	return "changed"
}

func (h *head) cut(ctx context.Context) (string, error) {
	return h.behindProxy(ctx, func(p *proxy, s *subscriber, d *rig.Driver) (string, error) {
		failed := make(chan error, 1)
		go func() { failed <- s.run(ctx) }()
		time.Sleep(rest)
		p.cut()
		err := <-failed
		if e := begin(ctx, d); e != nil {
			return "", e
		}
		time.Sleep(rest)
		return fmt.Sprintf("poll: %s; the next poll: %s", status.Code(err), s.next(ctx)), nil
	})
}

func (h *head) dropped(ctx context.Context) (string, error) {
	return h.behindProxy(ctx, func(p *proxy, s *subscriber, d *rig.Driver) (string, error) {
		ended := make(chan string, 1)
		go func() { ended <- s.next(ctx) }()
		time.Sleep(rest)
		p.silent.Store(true)
		if err := begin(ctx, d); err != nil {
			return "", err
		}
		return <-ended, nil
	})
}

// behindProxy starts a subscriber behind a proxy and a driver without one.
func (h *head) behindProxy(
	ctx context.Context, try func(*proxy, *subscriber, *rig.Driver) (string, error),
) (string, error) {
	p, err := startProxy(h.address)
	if err != nil {
		return "", err
	}
	defer p.close()
	s, err := h.actors(ctx, p.address())
	if err != nil {
		return "", err
	}
	defer s.conn.Close()
	d, err := h.driver(ctx, "driver")
	if err != nil {
		return "", err
	}
	defer d.Kill()
	if err := begin(ctx, d); err != nil { // so that the subscriber knows the publisher
		return "", err
	}
	s.drain(ctx)
	return try(p, s, d)
}

func (h *head) slow(ctx context.Context) (string, error) {
	return h.behindProxy(ctx, func(_ *proxy, s *subscriber, d *rig.Driver) (string, error) {
		for range 200 {
			if err := begin(ctx, d); err != nil {
				return "", err
			}
		}
		time.Sleep(5 * time.Second)
		return s.next(ctx), nil
	})
}

// other looks for gaps in the sequence numbers while another channel has messages.
func (h *head) other(ctx context.Context) (string, error) {
	return h.behindProxy(ctx, func(_ *proxy, s *subscriber, d *rig.Driver) (string, error) {
		another, err := h.driver(ctx, "another")
		if err != nil {
			return "", err
		}
		defer another.Kill()
		if err := begin(ctx, d); err != nil {
			return "", err
		}
		s.drain(ctx)
		gaps, last := 0, int64(0)
		for _, m := range s.between(time.Time{}, time.Now()) {
			if last != 0 && m.sequence != last+1 {
				gaps++
			}
			last = m.sequence
		}
		return fmt.Sprintf("%d gaps in the sequence numbers of actors, without a loss", gaps), nil
	})
}

func (h *head) forgotten(ctx context.Context) (result string, err error) {
	if err := h.again(ctx, shortTimeout); err != nil {
		return "", err
	}
	result, err = h.behindProxy(ctx, func(_ *proxy, s *subscriber, d *rig.Driver) (string, error) {
		time.Sleep(8 * time.Second)
		if err := begin(ctx, d); err != nil {
			return "", err
		}
		return s.next(ctx), nil
	})
	if err != nil {
		return "", err
	}
	return result, h.again(ctx)
}

func (h *head) restarted(ctx context.Context) (string, error) {
	s, err := h.actors(ctx, h.address)
	if err != nil {
		return "", err
	}
	defer s.conn.Close()
	failed := make(chan error, 1)
	go func() { failed <- s.run(ctx) }()
	time.Sleep(rest)
	if err := h.again(ctx, shortTimeout); err != nil {
		return "", err
	}
	poll := status.Code(<-failed)
	d, err := h.driver(ctx, "driver")
	if err != nil {
		return "", err
	}
	defer d.Kill()
	if err := begin(ctx, d); err != nil {
		return "", err
	}
	return fmt.Sprintf("poll: %s; the next poll without a new subscription: %s", poll, s.next(ctx)), h.again(ctx)
}

// again kills the head and starts another one at its address.
func (h *head) again(ctx context.Context, env ...string) error {
	h.fall()
	before := h.env
	h.env = append(before[:len(before):len(before)], env...)
	defer func() { h.env = before }()
	return h.launch(ctx)
}

// deadly makes a call that may end the head.
func (h *head) deadly(try func(context.Context, *subscriber) error) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		s, err := h.actors(ctx, h.address)
		if err != nil {
			return "", err
		}
		defer s.conn.Close()
		bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		code := status.Code(try(bounded, s))
		if h.alive() {
			return fmt.Sprintf("%s; the head lives", code), nil
		}
		return fmt.Sprintf("%s; THE HEAD DIES", code), h.again(ctx)
	}
}

// unknownCommand sends a command that neither subscribes nor unsubscribes, as a client of a later release may.
func (s *subscriber) unknownCommand(ctx context.Context) error {
	request := dynamicpb.NewMessage(s.wire.batch.Input())
	set(request, "subscriber_id", s.id)
	command := request.Mutable(request.Descriptor().Fields().ByName("commands")).List().AppendMutable().Message()
	set(command, "channel_type", s.number("GCS_ACTOR_CHANNEL"))
	command.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	_, err := call(ctx, s.conn, s.wire.batch, request)
	return err
}
