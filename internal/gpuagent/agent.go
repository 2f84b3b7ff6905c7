// Package gpuagent publishes the state of a machine's GPUs: it reads the cards from the driver, receives XIDs,
// remembers which cards had a fault, and writes a report to the annotation of the machine's node when something
// changed.
//
// It changes no card. It does not load the driver's library or use a Kubernetes client: its caller passes in both.
package gpuagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Driver is all that the agent needs from an open driver.
type Driver interface {
	Inventory() (gpuinfo.Inventory, error)
	// WatchXIDs subscribes to XIDs and returns the cards for which the driver reports none.
	WatchXIDs() (unwatched []int, err error)
	// NextXID waits for the next XID, at most for timeout.
	NextXID(timeout time.Duration) (event gpuinfo.XIDEvent, happened bool, err error)
}

// Publish writes a report to the annotation of the machine's node. written is false if the annotation had that value
// before.
type Publish func(ctx context.Context, value string) (written bool, err error)

// New returns an agent of the driver's cards. processes is /proc.
func New(driver Driver, publish Publish, log *slog.Logger, processes fs.FS) *Agent {
	return &Agent{driver: driver, publish: publish, log: log, boot: bootID(processes)}
}

// Agent publishes the state of this machine's cards, as the driver reports it.
type Agent struct {
	driver  Driver
	publish Publish
	log     *slog.Logger
	boot    string // the kernel's ID of this boot; empty if unknown
	// published is the report in the node's annotation, confirmed at that time; nil before the first.
	published *sharing.AgentReport
	confirmed time.Time
	// lastFull holds the last complete reading of each card: a lost card reports nothing about itself.
	lastFull map[int]gpuinfo.Card
	// watching means that the driver reports XIDs. logged are the XIDs since the last reading, faults those that made a
	// card unhealthy.
	watching bool
	logged   map[xidKey]bool
	faults   faults
}

// Run reads the cards at once, then after each interval and each fatal XID, until ctx ends. It logs a failure of the
// API server and tries again. It returns a failure of the driver: after a driver upgrade, only a new process loads the
// new library.
func (a *Agent) Run(ctx context.Context, interval time.Duration) error {
	a.watch() // before the first reading, so that nothing is lost between them
	for {
		var unpublished publishError
		switch err := a.Step(ctx, time.Now()); {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &unpublished):
			a.log.Warn("cannot write the node's annotation; the next reading tries again", "error", err)
		case err != nil:
			return err
		}
		if !a.wait(ctx, interval) {
			return nil
		}
	}
}

// publishError is a failure of the API server's side.
type publishError struct{ error }

func (p publishError) Unwrap() error { return p.error }

// bootID returns the kernel's ID of this boot, from the file that kubelet also reads
// (docs/reference/facts.md#boot-id-of-a-node).
func bootID(processes fs.FS) string {
	text, err := fs.ReadFile(processes, "sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Step reads the cards once and publishes the report if it changed.
func (a *Agent) Step(ctx context.Context, now time.Time) error {
	clear(a.logged)
	inventory, err := a.driver.Inventory()
	if err != nil {
		return fmt.Errorf("reading the cards: %w", err)
	}
	report, err := a.report(inventory)
	if err != nil {
		return err
	}
	report.At, report.BootID = now.UTC().Truncate(time.Second), a.boot
	if a.published != nil && now.Sub(a.confirmed) < sharing.AgentRefresh && same(*a.published, report) {
		return nil
	}
	value, err := report.Annotation()
	if err != nil {
		return err
	}
	written, err := a.publish(ctx, value)
	if err != nil {
		return publishError{err}
	}
	a.published, a.confirmed = &report, now
	if written {
		bad := slices.DeleteFunc(slices.Clone(report.Cards), func(c gpuinfo.Card) bool { return c.Healthy })
		a.log.Info("published the state of the cards", "cards", len(report.Cards), "unhealthy", len(bad))
	}
	return nil
}
