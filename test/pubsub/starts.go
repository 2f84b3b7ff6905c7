package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/rig"
)

const (
	// readEvery is the pause between readings that look for what has started.
	readEvery = 10 * time.Millisecond
	// rest is the least pause between trials, after which the head's load report says that nothing waits. Up to a
	// second more makes the trials independent of the load reports, of which there is one per second.
	rest = 1500 * time.Millisecond
	// periodic is the channel on which agents publish the use of machines every few seconds, whatever happens.
	periodic = "NODE_RESOURCE_USAGE"
)

// start is one way in which something starts in a cluster at rest.
type start struct {
	name string
	// begin starts it.
	begin beginning
	// visible reports whether a reading shows it.
	visible func(s raydemand.State, name string) bool
	// trials limits the number of trials, if it is not 0.
	trials int
}

// beginning starts something. The name is that of a resource that no node has. It returns the time of the call and what
// ends the thing.
type beginning func(ctx context.Context, name string) (at time.Time, end func() error, err error)

// starts are all kinds, with a driver that has been connected for long.
func (h *head) starts(d *rig.Driver) []start {
	waits := func(s raydemand.State, name string) bool { return asks(s.Demand.Requests, name) }
	command := func(c rig.Command) beginning {
		return func(ctx context.Context, name string) (time.Time, func() error, error) { return do(ctx, d, c, name) }
	}
	return []start{
		{name: "a task of a connected driver", visible: waits, begin: command(rig.Command{Do: "task"})},
		{name: "an actor of a connected driver", visible: waits, begin: command(rig.Command{Do: "actor"})},
		{
			name: "a placement group of a connected driver", begin: command(rig.Command{Do: "group"}),
			visible: func(s raydemand.State, name string) bool {
				holds := func(g raydemand.Gang) bool { return g.Bundles[0][name] > 0 }
				return slices.ContainsFunc(s.Demand.Gangs, holds)
			},
		},
		{
			name: "request_resources of a connected driver", trials: 3, begin: requestResources(d),
			visible: func(s raydemand.State, name string) bool { return asks(s.Demand.Constraint, name) },
		},
		{
			name: "a task that an idle node runs", visible: busy,
			begin: func(ctx context.Context, name string) (time.Time, func() error, error) {
				return do(ctx, d, rig.Command{Do: "task", CPUs: 1}, "")
			},
		},
		{name: "a node becomes idle", visible: idle, begin: becomesIdle(d)},
		{name: "the first task of a new driver", trials: 3, visible: waits, begin: h.newDriver},
		{
			name: "a node joins", trials: 2,
			visible: func(s raydemand.State, _ string) bool { return living(s) == len(h.workers)+1 },
			begin: func(context.Context, string) (time.Time, func() error, error) {
				at := time.Now()
				return at, func() error { return nil }, h.addWorker()
			},
		},
	}
}

// do has the driver start something that waits for a resource, or without one for a CPU.
func do(ctx context.Context, d *rig.Driver, c rig.Command, resource string) (time.Time, func() error, error) {
	c.ID = fmt.Sprintf("%s %d", c.Do, time.Now().UnixNano())
	if resource != "" {
		c.Resources = map[string]float64{resource: 1}
		c.Bundles = []map[string]float64{c.Resources}
	}
	if err := d.Do(c); err != nil {
		return time.Time{}, nil, err
	}
	event, err := d.Wait(ctx, c.ID, "submitted")
	return event.At, func() error { return d.Do(rig.Command{Do: "release", ID: c.ID}) }, err
}

// requestResources calls Ray's SDK.
func requestResources(d *rig.Driver) beginning {
	return func(ctx context.Context, name string) (time.Time, func() error, error) {
		at, bundles := time.Now(), []map[string]float64{{name: 1}}
		err := d.Do(rig.Command{Do: "request_resources", ID: name, Bundles: bundles})
		if err == nil {
			_, err = d.Wait(ctx, name, "requested")
		}
		return at, func() error { return d.Do(rig.Command{Do: "request_resources", ID: name + " end"}) }, err
	}
}

// becomesIdle runs a task; the time is that of its end.
func becomesIdle(d *rig.Driver) beginning {
	return func(ctx context.Context, _ string) (time.Time, func() error, error) {
		id := fmt.Sprintf("short %d", time.Now().UnixNano())
		if err := d.Do(rig.Command{Do: "task", ID: id, CPUs: 1, Seconds: 1.5}); err != nil {
			return time.Time{}, nil, err
		}
		event, err := d.Wait(ctx, id, "done")
		return event.At, func() error { return nil }, err
	}
}

// newDriver connects a driver that starts a task at once. The time is that of the task.
func (h *head) newDriver(ctx context.Context, name string) (time.Time, func() error, error) {
	d, err := h.driver(ctx, name)
	if err != nil {
		return time.Time{}, nil, err
	}
	at, _, err := do(ctx, d, rig.Command{Do: "task"}, name)
	return at, func() error { d.Stop(ctx); return nil }, err
}

func asks(requests []raydemand.Request, resource string) bool {
	return slices.ContainsFunc(requests, func(r raydemand.Request) bool { return r.Bundle[resource] > 0 })
}

func busy(s raydemand.State, _ string) bool { return !idle(s, "") }

func idle(s raydemand.State, _ string) bool {
	return !slices.ContainsFunc(s.Nodes, func(n raydemand.Node) bool { return n.Status == raydemand.Running })
}

func living(s raydemand.State) int {
	n := 0
	for _, node := range s.Nodes {
		if node.Status != raydemand.Dead {
			n++
		}
	}
	return n
}

// outcome is what one trial saw. Times are after the call.
type outcome struct {
	visible  time.Duration
	messages []message
	at       time.Time
}

// trial starts something once and watches until a reading shows it.
func (h *head) trial(ctx context.Context, s start, name string, subscribers []*subscriber) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := gcs.Dial(gcs.Config{Address: h.address})
	if err != nil {
		return o, err
	}
	defer client.Close()
	before := time.Now()
	at, release, err := s.begin(ctx, name)
	if err != nil {
		return o, fmt.Errorf("%s: %w", s.name, err)
	}
	for {
		state, err := client.State(ctx)
		if err != nil {
			return o, fmt.Errorf("%s: %w", s.name, err)
		}
		if s.visible(state, name) {
			break
		}
		time.Sleep(readEvery)
	}
	seen := time.Now()
	o = outcome{visible: seen.Sub(at), at: at}
	if strings.HasPrefix(s.name, "the first") || strings.HasSuffix(s.name, "joins") {
		at = before // what precedes the call belongs to the start
	}
	for _, subscriber := range subscribers {
		for _, m := range subscriber.between(at, seen) {
			if m.channel != periodic {
				o.messages = append(o.messages, m)
			}
		}
	}
	if err := release(); err != nil {
		return o, err
	}
	time.Sleep(rest + rand.N(time.Second))
	return o, nil
}
