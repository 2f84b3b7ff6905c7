package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/gpuagent"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// gpuDriver is all that the commands need from an open driver.
type gpuDriver interface {
	gpuagent.Driver
	Close() error
}

// gpusCommand has the flags of `gpus`, opens the driver, and reads processes.
type gpusCommand struct {
	open      func() (gpuDriver, error)
	processes fs.FS
	output    string
	node      string
	nodeFile  string
	kube      cli.KubeFlags
}

// newGPUsCommand returns the command; open opens the driver, and processes is /proc.
func newGPUsCommand(open func() (gpuDriver, error), processes fs.FS) *cobra.Command {
	g := gpusCommand{open: open, processes: processes}
	cmd := &cobra.Command{
		Use:   "gpus [--node NAME | --node-file FILE]",
		Short: "Shows this machine's GPUs as the NVIDIA driver reports them, and where its Kubernetes node differs",
		Long: "Reads cards, memory, MIG instances, processes and health from the NVIDIA driver, once. Given a\n" +
			"node, from the API server or from a file, it also shows where the node announces something else.\n" +
			"It does not show XIDs: the driver reports them only when they happen, and `autoscaler agent`\n" +
			"records them. The exit status is 1 if there is no driver.",
		Example: `  autoscaler gpus
  kubectl get node gpu-1 -o yaml | autoscaler gpus --node-file -`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cli.Output(cmd.Flags(), &g.output, cli.Outputs...)
	cmd.Flags().StringVar(&g.node, "node", "", "compare with this node from the API server")
	cmd.Flags().StringVar(&g.nodeFile, "node-file", "",
		"compare with the node in this file, YAML or JSON, or - for standard input")
	g.kube.AddTo(cmd.Flags())
	g.kube.CompleteOwn(cmd)
	return cmd
}

func (g gpusCommand) run(ctx context.Context, in io.Reader, out io.Writer) error {
	write := printer.WriterOf(g.output, printer.Look{}, printer.WriteGPUs)
	switch {
	case g.node != "" && g.nodeFile != "":
		return cli.BadInput(errors.New("want one of --node and --node-file"))
	case g.kube.Given() && g.node == "":
		return cli.BadInput(errors.New("--kubeconfig and --context: want --node with them"))
	}
	report, err := g.report(ctx, in)
	if err != nil {
		return err
	}
	if err := write(out, report); err != nil {
		return fmt.Errorf("writing the cards: %w", err)
	}
	return nil
}

func (g gpusCommand) report(ctx context.Context, in io.Reader) (printer.GPUs, error) {
	inventory, err := inventoryOf(g.open)
	if err != nil {
		return printer.GPUs{}, err
	}
	report := printer.GPUs{Inventory: inventory, Findings: sharing.CheckCards(inventory)}
	report.Findings = append(report.Findings, sharing.ProcessesOutsidePods(inventory, inPod(g.processes))...)
	if g.node == "" && g.nodeFile == "" {
		return report, nil
	}
	object, err := g.nodeObject(ctx, in)
	if err != nil {
		return printer.GPUs{}, err
	}
	node := sharing.Reader{}.Read(object)
	report.Node = &node
	report.Findings = append(report.Findings, sharing.CompareCards(node, inventory)...)
	return report, nil
}

// inventoryOf reads the cards once and closes the driver.
func inventoryOf(open func() (gpuDriver, error)) (inventory gpuinfo.Inventory, err error) {
	driver, err := open()
	if err != nil {
		return inventory, err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	return driver.Inventory()
}

func (g gpusCommand) nodeObject(ctx context.Context, in io.Reader) (sharing.NodeObject, error) {
	if g.node != "" {
		node, err := agentNode(g.kube, g.node)
		if err != nil {
			return sharing.NodeObject{}, err
		}
		return node.Object(ctx)
	}
	nodes, err := nodesOfFile(g.nodeFile, in)
	switch {
	case err != nil:
		return sharing.NodeObject{}, cli.BadInput(err)
	case len(nodes) != 1:
		return sharing.NodeObject{}, cli.BadInput(
			fmt.Errorf("reading nodes from %s: it has %d, want the one of this machine", g.nodeFile, len(nodes)),
		)
	}
	return nodes[0], nil
}

func agentNode(server cli.KubeFlags, name string) (*kube.AgentNode, error) {
	config, err := server.Config()
	if err != nil {
		return nil, err
	}
	return kube.NewAgentNode(config, name)
}

// inPod reports whether a process is in a pod, by its control groups: kubelet creates all of them below kubepods, with
// every cgroup driver. A process that is not visible has exited or is in another PID namespace.
func inPod(processes fs.FS) func(pid uint32) (in, known bool) {
	return func(pid uint32) (in, known bool) {
		groups, err := fs.ReadFile(processes, fmt.Sprintf("%d/cgroup", pid))
		if err != nil {
			return false, false
		}
		return strings.Contains(string(groups), "kubepods"), true
	}
}

// proc returns the proc file system.
func proc() fs.FS { return os.DirFS("/proc") }
