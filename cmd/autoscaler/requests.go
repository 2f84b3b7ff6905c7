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

func newRequestsCommand() *cobra.Command {
	var flags watchFlags
	cmd := &cobra.Command{
		Use:   "requests [RAYCLUSTER]",
		Short: "Lists requests for capacity and their status",
		Long: "Lists the requests with owners of all RayClusters that you may see, or those of one RayCluster,\n" +
			"with its plain request first. With -w, it lists them again whenever something changes.\n\n" +
			cli.ServerHelp,
		Example: "  autoscaler requests\n  autoscaler requests ml/llm\n  autoscaler requests ml/llm -o json",
		Args:    cli.AtMostOneCluster,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		as := printer.LookOf(cmd.OutOrStdout(), flags.Output)
		write := printer.WriterOf(flags.Output, as, func(p *printer.Page, list apiv1.RequestList) {
			printer.WriteRequests(p, len(args) == 0, flags.Server.Namespace, list)
		})
		var key nodepool.ClusterKey
		if len(args) == 1 {
			var err error
			if key, err = flags.Server.Cluster(args[0]); err != nil {
				return err
			}
		}
		api, err := flags.Server.Client()
		if err != nil {
			return err
		}
		return flags.Show(cmd, api, key, func(ctx context.Context, out io.Writer) error {
			requests, err := api.Requests(ctx, key)
			if err != nil {
				return err
			}
			return write(out, apiv1.RequestList{Items: ofNamespace(requests, flags.Server.Namespace)})
		})
	}
	flags.AddTo(cmd, cli.Outputs...)
	return cmd
}

// ofNamespace returns the requests of a namespace, or all if it is empty.
func ofNamespace(requests []apiv1.OwnedRequest, namespace string) []apiv1.OwnedRequest {
	kept := []apiv1.OwnedRequest{}
	for _, r := range requests {
		if namespace == "" || r.Namespace == namespace {
			kept = append(kept, r)
		}
	}
	return kept
}
