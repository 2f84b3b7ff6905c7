package main

import (
	"slices"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func newRequestsCommand() *cobra.Command {
	var flags showFlags
	cmd := &cobra.Command{
		Use:   "requests [RAYCLUSTER]",
		Short: "Lists requests for capacity and their status",
		Long: "Lists the requests with owners of all RayClusters that you may see, or those of one RayCluster,\n" +
			"with its plain request first.\n\n" +
			cli.ServerHelp,
		Example: "  autoscaler requests\n  autoscaler requests ml/llm\n  autoscaler requests ml/llm -o json",
		Args:    cli.Arguments(0, 1),
		RunE:    func(cmd *cobra.Command, args []string) error { return flags.requests(cmd, args) },
	}
	flags.addTo(cmd)
	return cmd
}

func (f *showFlags) requests(cmd *cobra.Command, args []string) (err error) {
	var key nodepool.ClusterKey
	if len(args) == 1 {
		if key, err = f.server.Cluster(args[0]); err != nil {
			return err
		}
	}
	api, err := f.server.Client()
	if err != nil {
		return err
	}
	requests, err := api.Requests(cmd.Context(), key)
	if err != nil {
		return err
	}
	namespace := f.server.Namespace
	requests = slices.DeleteFunc(requests, func(r apiv1.OwnedRequest) bool {
		return namespace != "" && r.Namespace != namespace
	})
	list := apiv1.RequestList{Items: apiv1.List(requests)}
	return printer.Write(cmd.OutOrStdout(), f.output, list, printer.WriteRequests)
}
