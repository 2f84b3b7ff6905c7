package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/connect"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

// agentFlags are the flags of `agent`.
type agentFlags struct {
	node      string
	kube      connect.KubeFlags
	interval  time.Duration
	once      bool
	logFormat string
}

func newAgentCommand(open func() (gpuDriver, error)) *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "agent --node NAME",
		Short: "Publishes the state of this machine's GPUs in an annotation of its Kubernetes node",
		Long: "Reads each card's free memory, MIG layout and health from the NVIDIA driver, and writes them to\n" +
			"the node's annotation " + nodegpu.AgentAnnotation + " when they change. After a fatal XID, a card\n" +
			"stays unhealthy until you restart the agent. The agent changes no card. deploy/agent.yaml runs it on\n" +
			"each GPU node.",
		Example: "  autoscaler agent --node gpu-1 --once",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), open, cmd.ErrOrStderr()) },
	}
	cmd.Flags().StringVar(&f.node, "node", "", "this machine's Kubernetes node name")
	cmd.Flags().DurationVar(&f.interval, "interval", 30*time.Second, "pause between readings")
	cmd.Flags().BoolVar(&f.once, "once", false, "read and write once, then exit")
	f.kube.AddTo(cmd.Flags())
	f.kube.CompleteOwn(cmd)
	cmd.Flags().StringVar(&f.logFormat, "log-format", "text", "text or json")
	return cmd
}

func (f agentFlags) run(ctx context.Context, open func() (gpuDriver, error), errOut io.Writer) (err error) {
	switch {
	case f.node == "":
		return cli.BadInput(errors.New("--node is missing: want this machine's Kubernetes node name"))
	case f.interval < time.Second:
		return cli.BadInput(fmt.Errorf("--interval %s: want at least 1s", f.interval))
	}
	log, err := telemetry.NewLogger(errOut, f.logFormat, "info")
	if err != nil {
		return cli.BadInput(err)
	}
	driver, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	node, err := agentNode(f.kube, f.node)
	if err != nil {
		return err
	}
	a := &agent{driver: driver, publish: node.Publish, log: log.With("node", f.node), boot: bootID(proc())}
	if f.once {
		return a.step(ctx, time.Now())
	}
	return a.loop(ctx, f.interval)
}

// agent publishes the state of this machine's cards, as the driver reports it.
type agent struct {
	driver  gpuDriver
	publish func(ctx context.Context, value string) (written bool, err error)
	log     *slog.Logger
	boot    string // the kernel's ID of this boot; empty if unknown
	// published is the report in the node's annotation, confirmed at that time; nil before the first.
	published *nodegpu.AgentReport
	confirmed time.Time
	// lastFull holds the last complete reading of each card: a lost card reports nothing about itself.
	lastFull map[int]gpuinfo.Card
	// watching means that the driver reports XIDs. logged are the XIDs since the last reading, faults those that made a
	// card unhealthy.
	watching bool
	logged   map[xidKey]bool
	faults   faults
}

// loop reads the cards at once, then after each interval and each fatal XID, until ctx ends. It logs a failure of the
// API server and tries again. It returns a failure of the driver: after a driver upgrade, only a new process loads the
// new library.
func (a *agent) loop(ctx context.Context, interval time.Duration) error {
	a.watch() // before the first reading, so that nothing is lost between them
	for {
		var unpublished publishError
		switch err := a.step(ctx, time.Now()); {
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

// step reads the cards once and publishes the report if it changed.
func (a *agent) step(ctx context.Context, now time.Time) error {
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
	if a.published != nil && now.Sub(a.confirmed) < nodegpu.AgentRefresh && same(*a.published, report) {
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
		a.log.Info("published the state of the cards", "cards", len(report.Cards), "unhealthy", unhealthy(report))
	}
	return nil
}

func unhealthy(report nodegpu.AgentReport) int {
	n := 0
	for _, card := range report.Cards {
		if !card.Healthy {
			n++
		}
	}
	return n
}
