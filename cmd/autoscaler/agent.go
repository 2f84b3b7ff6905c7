package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/gpuagent"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

type agentFlags struct {
	node      string
	kube      cli.KubeFlags
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
			"the node's annotation " + sharing.AgentAnnotation + " when they change. After a fatal XID, a card\n" +
			"stays unhealthy until you restart the agent. The agent changes no card. deploy/agent.yaml runs it on\n" +
			"each GPU node.",
		Example: "  autoscaler agent --node gpu-1 --once",
		Args:    cli.Arguments(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), open, cmd.ErrOrStderr()) },
	}
	cmd.Flags().StringVar(&f.node, "node", "", "this machine's Kubernetes node name")
	cmd.Flags().DurationVar(&f.interval, "interval", 30*time.Second, "pause between readings")
	cmd.Flags().BoolVar(&f.once, "once", false, "read and write once, then exit")
	f.kube.AddTo(cmd.Flags())
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
	config, err := f.kube.Config()
	if err != nil {
		return err
	}
	node, err := kube.NewAgentNode(config, f.node)
	if err != nil {
		return err
	}
	a := gpuagent.New(driver, node.Publish, log.With("node", f.node), os.DirFS("/proc"))
	if f.once {
		return a.Step(ctx, time.Now())
	}
	return a.Run(ctx, f.interval)
}
