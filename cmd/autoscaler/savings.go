package main

import (
	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/connect"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/cli/table"
)

func newSavingsCommand() *cobra.Command {
	var server connect.ServerFlags
	var output, since string
	var all bool
	cmd := &cobra.Command{
		Use:   "savings",
		Short: "Shows what other settings would have cost, with the change to make",
		Long: "Replays how workers were used with other idle timeouts, minimums, warm capacity, sizes of\n" +
			"workers and slices of GPUs. Each row says what the group cost, what it would have cost, and how\n" +
			"much longer work would have waited. Below the table are the changes. Without --all, only changes\n" +
			"that would have saved something are shown, and of each kind the one that would have saved most.\n" +
			"\n" + connect.Help,
		Example: "  autoscaler savings\n  autoscaler savings --since 30d -n ml --all\n" +
			"  autoscaler savings -o csv",
		Args: cli.NoArguments,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		write := cli.WriterOf(output, printer.WriteSavings(table.LookOf(cmd.OutOrStdout(), output), all))
		if output == "csv" {
			write = printer.WriteSavingsCSV
		}
		api, err := server.Client()
		if err != nil {
			return err
		}
		savings, err := api.Savings(cmd.Context(), since, server.Namespace)
		if err != nil {
			return err
		}
		if len(savings.Items) == 0 {
			writeNote(cmd, server.EmptyNamespace(cmd.Context(), api))
		}
		return write(cmd.OutOrStdout(), savings)
	}
	f := cmd.Flags()
	server.AddTo(cmd)
	server.ListsAll(cmd)
	cli.Output(f, &output, csvOutputs...)
	since = "7d"
	addSince(f, &since)
	f.BoolVar(&all, "all", false, "show also changes that would have saved less, or nothing (the table only)")
	return cmd
}
