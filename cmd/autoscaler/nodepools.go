package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/cmd/autoscaler/engine"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// nodepoolsFlags say where `nodepools` finds nodes, and how it reads them.
type nodepoolsFlags struct {
	files  []string
	kube   cli.KubeFlags
	output string
	nodes  cli.NodeReaderFlags
	pools  string
}

func newNodepoolsCommand() *cobra.Command {
	var flags nodepoolsFlags
	cmd := &cobra.Command{
		Use:   "nodepools [-f FILE...]",
		Short: "Shows the GPUs of each node and node pool, and their problems",
		Long: "Shows how Heliostat reads the GPUs of each node: kind, cards, units, the memory of a unit,\n" +
			"isolation and problems. It reads nodes from the API server, or from manifests as `kubectl get\n" +
			"nodes -o yaml` prints them.\n" +
			"\n" +
			"Pods, ResourceSlices and ResourceClaims show what is free on each card. The Cluster Autoscaler's\n" +
			"status and Karpenter's NodePools show how far pools may grow.\n" +
			"\n" +
			"In tables, - means unknown or absent, and FREE/UNITS is how many units of a resource no pod\n" +
			"requests, of how many there are. -o wide has more columns; FREE PER CARD has an entry for each\n" +
			"card, in MiB, in units (1u), or ? if nothing is known of the card.",
		Example: `  autoscaler nodepools -o wide
  kubectl get nodes,pods -A -o json | autoscaler nodepools -f -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && len(flags.files) == 0 {
				return cli.BadInput(fmt.Errorf("unexpected argument %q; files follow -f", args[0]))
			}
			flags.files = append(flags.files, args...)
			return flags.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringArrayVarP(&flags.files, "filename", "f", nil, "a file with nodes, YAML or JSON, or - for "+
		"standard input; can be repeated")
	flags.kube.AddTo(cmd.Flags())
	flags.nodes.AddOfNodes(cmd.Flags())
	cmd.Flags().StringVar(&flags.pools, "pools", "",
		"a file that describes pools: their sizes, prices, and the nodes that a pool without nodes would have")
	cli.Output(cmd.Flags(), &flags.output, cli.Outputs...)
	cmd.MarkFlagsMutuallyExclusive("filename", "kubeconfig")
	cmd.MarkFlagsMutuallyExclusive("filename", "context")
	return cmd
}

func (f nodepoolsFlags) run(ctx context.Context, in io.Reader, out io.Writer) error {
	reader, err := f.nodes.Reader()
	if err != nil {
		return err
	}
	if len(f.files) == 0 {
		reader.At = time.Now()
	}
	config, err := cli.ReadPools(f.pools)
	if err != nil {
		return cli.BadInput(err)
	}
	set, err := f.listNodes(ctx, in)
	if err != nil {
		return err
	}
	if len(set.Nodes())+len(set.Ceilings) == 0 && len(f.files) > 0 && f.pools == "" {
		return cli.BadInput(
			fmt.Errorf("no node in %s: want what `kubectl get nodes -o yaml` prints", strings.Join(f.files, ", ")),
		)
	}
	report := engine.NodepoolsReport(set, reader, config)
	report.Nodes = apiv1.List(report.Nodes)
	if err := printer.Write(out, f.output, report, printer.WriteNodepools); err != nil {
		return fmt.Errorf("writing the nodes: %w", err)
	}
	return nil
}

// listNodes reads the files, or lists nodes from the API server if there are none.
func (f nodepoolsFlags) listNodes(ctx context.Context, in io.Reader) (*decode.NodeSet, error) {
	if len(f.files) == 0 {
		config, err := f.kube.Config()
		if err != nil {
			return nil, cli.BadInput(fmt.Errorf("%w, or nodes with -f", err))
		}
		return kube.ListNodes(ctx, config)
	}
	set := &decode.NodeSet{}
	for _, name := range f.files {
		if err := cli.ReadFile(name, "nodes", in, cli.MaxManifests, set.Read); err != nil {
			return nil, cli.BadInput(err)
		}
	}
	return set, nil
}
