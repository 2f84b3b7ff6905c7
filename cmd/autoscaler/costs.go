package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/connect"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/cli/table"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// costsFlags are the flags of `costs`.
type costsFlags struct {
	server            connect.ServerFlags
	output, since, by string
}

func newCostsCommand() *cobra.Command {
	var flags costsFlags
	cmd := &cobra.Command{
		Use:   "costs",
		Short: "Shows what the pods of RayClusters cost, for whom and why",
		Long: "Shows what pods have cost by RayCluster, group, owner, Ray job or cause: what work used, what\n" +
			"requests reserved, and what was idle, starting, leaving or lost. Below the table is what is idle\n" +
			"now, with a command that helps. -o csv is for spreadsheets.\n\n" + connect.Help,
		Example: "  autoscaler costs\n  autoscaler costs --since 7d --by owner\n" +
			"  autoscaler costs -n ml --by cause -o csv",
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	f := cmd.Flags()
	flags.server.AddTo(cmd)
	flags.server.ListsAll(cmd)
	f.StringVarP(&flags.output, "output", "o", "table", "table, json, yaml or csv")
	f.StringVar(&flags.since, "since", "24h", "how far back, in minutes, hours or days, at most 30d")
	validateSince(f, &flags.since)
	f.StringVar(&flags.by, "by", "cluster", "cluster, group, owner, job or cause")
	cli.ValidateString(f, "by", &flags.by, "cluster, group, owner, job or cause",
		func(word string) bool { return apiv1.CostsBy(word).Valid() })
	cli.CompleteFlag(cmd, "output", cobra.FixedCompletions([]string{"table", "json", "yaml", "csv"},
		cobra.ShellCompDirectiveNoFileComp))
	cli.CompleteFlag(cmd, "by", cobra.FixedCompletions([]string{"cluster", "group", "owner", "job", "cause"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *costsFlags) run(cmd *cobra.Command) error {
	write := printer.WriteCostsCSV
	if f.output != "csv" {
		var err error
		write, err = cli.WriterOf(f.output, printer.WriteCosts(table.LookOf(cmd.OutOrStdout(), f.output)))
		if err != nil {
			return cli.BadInput(fmt.Errorf("--output %q: want table, json, yaml or csv", f.output))
		}
	}
	api, err := f.server.Client()
	if err != nil {
		return err
	}
	costs, err := api.Costs(cmd.Context(), f.since, apiv1.CostsBy(f.by), f.server.Namespace)
	if err != nil {
		return err
	}
	if len(costs.Items) == 0 {
		writeNote(cmd, f.server.EmptyNamespace(cmd.Context(), api))
	}
	return write(cmd.OutOrStdout(), costs)
}

// validateSince makes the flag accept what the server accepts.
func validateSince(flags *pflag.FlagSet, since *string) {
	cli.ValidateString(flags, "since", since, apiv1.WantSince, func(text string) bool {
		_, valid := apiv1.ReadSince(text)
		return valid
	})
}
