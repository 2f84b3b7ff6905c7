package main

import (
	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
)

type costsFlags struct {
	server     cli.ServerFlags
	output, by string
}

func newCostsCommand() *cobra.Command {
	flags := costsFlags{by: "cluster"}
	cmd := &cobra.Command{
		Use:   "costs",
		Short: "Shows what the pods of RayClusters cost, for whom and why",
		Long: "Shows what pods have cost since Heliostat started, by RayCluster, group, owner or cause:\n" +
			"what work used, what requests reserved, and what was idle, starting, leaving or lost. Below the\n" +
			"table is what is idle now, with a command that helps. Prometheus has the costs of any other time\n" +
			"(docs/reference/costs.md).\n\n" + cli.ServerHelp,
		Example: "  autoscaler costs\n  autoscaler costs --by owner\n" +
			"  autoscaler costs -n ml --by cause",
		Args: cli.Arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	f := cmd.Flags()
	flags.server.AddTo(cmd)
	flags.server.ListsAll(cmd)
	cli.Output(f, &flags.output, cli.Outputs...)
	cli.Word(f, &flags.by, "by", "", "cluster", "group", "owner", "cause")
	return cmd
}

func (f *costsFlags) run(cmd *cobra.Command) error {
	api, err := f.server.Client()
	if err != nil {
		return err
	}
	costs, err := api.Costs(cmd.Context(), apiv1.CostsBy(f.by), f.server.Namespace)
	if err != nil {
		return err
	}
	return printer.Write(cmd.OutOrStdout(), f.output, costs, printer.WriteCosts)
}
