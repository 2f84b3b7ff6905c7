package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func newStatusCommand() *cobra.Command {
	var flags watchFlags
	cmd := &cobra.Command{
		Use:   "status [RAYCLUSTER]",
		Short: "Shows all RayClusters, or one with its groups, demand, reasons and recent changes",
		Long: "Shows the state and decisions of Heliostat: all RayClusters with one line each, or one in detail.\n" +
			"With -w it shows them again whenever something changes. In tables, - means unknown.\n\n" +
			cli.ServerHelp,
		Example: `  autoscaler status
  autoscaler status llm -n ml
  autoscaler status ml/llm -o yaml
  autoscaler status ml/llm -w`,
		Args: cli.AtMostOneCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return statusOfFleet(&flags, cmd)
			}
			return statusOfCluster(&flags, cmd, args[0])
		},
	}
	flags.AddTo(cmd, cli.Outputs...)
	return cmd
}

func statusOfFleet(f *watchFlags, cmd *cobra.Command) error {
	as := printer.LookOf(cmd.OutOrStdout(), f.Output)
	write := printer.WriterOf(f.Output, as, func(p *printer.Page, list apiv1.ClusterList) {
		printer.WriteFleet(p, f.Server.Namespace, list)
	})
	api, err := f.Server.Client()
	if err != nil {
		return err
	}
	return f.Show(cmd, api, nodepool.ClusterKey{}, func(ctx context.Context, out io.Writer) error {
		clusters, err := api.Clusters(ctx, f.Server.Namespace)
		if err != nil {
			return err
		}
		return write(out, apiv1.ClusterList{Items: append([]apiv1.ClusterSummary{}, clusters...)})
	})
}

func statusOfCluster(f *watchFlags, cmd *cobra.Command, argument string) error {
	as := printer.LookOf(cmd.OutOrStdout(), f.Output)
	write := printer.WriterOf(f.Output, as, printer.WriteCluster)
	key, api, err := f.Server.Target(argument)
	if err != nil {
		return err
	}
	return f.Show(cmd, api, key, func(ctx context.Context, out io.Writer) error {
		cluster, err := api.Status(ctx, key)
		if err != nil {
			return err
		}
		return write(out, cluster)
	})
}
