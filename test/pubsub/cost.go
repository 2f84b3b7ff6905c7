package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"heliostat.dev/heliostat/internal/simray"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/rig"
)

// readings are as many as it takes to see their CPU time, counted are those through the proxy that counts bytes.
// polls are open at the same time, for atRest. The simulated head has workers.
const (
	readings = 2000
	counted  = 100
	polls    = 500
	workers  = 50
	atRest   = 15 * time.Second
)

// cost prints what a reading costs, and what a poll costs while nothing happens.
func (h *head) cost(ctx context.Context) error {
	if err := h.readingCost(ctx); err != nil {
		return err
	}
	return h.pollCost(ctx)
}

// simulatedCost prints what a reading of a head with many workers costs. Its replies repeat, as those of a cluster at
// rest.
func simulatedCost(ctx context.Context) error {
	simulated, err := simray.Start(simray.Options{})
	if err != nil {
		return err
	}
	defer simulated.Close()
	for i := range workers {
		simulated.AddNode(simray.Node{Instance: fmt.Sprintf("worker-%d", i), Group: "workers",
			IP: fmt.Sprintf("10.0.0.%d", i+1), Resources: raydemand.Bundle{
				raydemand.CPU:         raydemand.Whole(8),
				raydemand.Memory:      raydemand.Whole(32 << 30),
				"object_store_memory": raydemand.Whole(9 << 30),
			}})
	}
	size, err := readingSize(ctx, simulated.Addr())
	if err != nil {
		return err
	}
	client, err := gcs.Dial(gcs.Config{Address: simulated.Addr()})
	if err != nil {
		return err
	}
	defer client.Close()
	before, err := rig.UsageOf(os.Getpid())
	if err != nil {
		return err
	}
	if err := readOften(ctx, client, readings); err != nil {
		return err
	}
	after, err := rig.UsageOf(os.Getpid())
	if err != nil {
		return err
	}
	fmt.Printf("simulated head with %d workers, a reading: %d bytes both ways; CPU of reader and head together: %s\n",
		workers, size, ((after.CPU - before.CPU) / readings).Round(time.Microsecond))
	return nil
}

// usage is that of this program and of the GCS.
func (h *head) usage() (own, theirs rig.Usage, err error) {
	if own, err = rig.UsageOf(os.Getpid()); err != nil {
		return own, theirs, err
	}
	theirs, err = rig.UsageOf(h.gcsPID())
	return own, theirs, err
}

func (h *head) readingCost(ctx context.Context) error {
	size, err := readingSize(ctx, h.address)
	if err != nil {
		return err
	}
	plain, err := gcs.Dial(gcs.Config{Address: h.address})
	if err != nil {
		return err
	}
	defer plain.Close()
	own, theirs, err := h.usage()
	if err != nil {
		return err
	}
	if err := readOften(ctx, plain, readings); err != nil {
		return err
	}
	ownAfter, theirsAfter, err := h.usage()
	if err != nil {
		return err
	}
	fmt.Printf("a reading: %d bytes both ways; CPU: reader %s, GCS %s\n", size,
		((ownAfter.CPU - own.CPU) / readings).Round(time.Microsecond),
		((theirsAfter.CPU - theirs.CPU) / readings).Round(time.Microsecond))
	return nil
}

// readingSize returns the bytes of a reading, both ways, without TCP's own.
func readingSize(ctx context.Context, address string) (int64, error) {
	p, err := startProxy(address)
	if err != nil {
		return 0, err
	}
	defer p.close()
	client, err := gcs.Dial(gcs.Config{Address: p.address()})
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := readOften(ctx, client, 1); err != nil { // connects
		return 0, err
	}
	before := p.bytes.Load()
	err = readOften(ctx, client, counted)
	return (p.bytes.Load() - before) / counted, err
}

func readOften(ctx context.Context, client *gcs.Client, times int) error {
	for range times {
		if _, err := client.State(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pollCost keeps many polls without messages open, each with a connection of its own.
func (h *head) pollCost(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := startProxy(h.address)
	if err != nil {
		return err
	}
	defer p.close()
	own, theirs, err := h.usage()
	if err != nil {
		return err
	}
	for i := range polls {
		address := h.address
		if i == 0 {
			address = p.address()
		}
		s, err := h.actors(ctx, address)
		if err != nil {
			return err
		}
		defer s.conn.Close()
		go s.run(ctx) //nolint:errcheck // it ends with ctx
	}
	time.Sleep(rest)
	opened, heldAtFirst, err := h.usage()
	if err != nil {
		return err
	}
	bytes := p.bytes.Load()
	time.Sleep(atRest)
	after, held, err := h.usage()
	if err != nil {
		return err
	}
	fmt.Printf("%d polls without messages: resident, each: reader %d KiB, GCS %d KiB; "+
		"CPU in %s: reader %s, GCS %s (all that it does); bytes of one: %d\n",
		polls, (opened.Resident-own.Resident)>>10/polls, (held.Resident-theirs.Resident)>>10/polls,
		atRest, after.CPU-opened.CPU, held.CPU-heldAtFirst.CPU, p.bytes.Load()-bytes)
	return nil
}
