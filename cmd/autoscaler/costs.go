package main

import (
	"fmt"
	"io"

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
	server     connect.ServerFlags
	output, by string
}

func newCostsCommand() *cobra.Command {
	var flags costsFlags
	cmd := &cobra.Command{
		Use:   "costs",
		Short: "Shows what the pods of RayClusters cost, for whom and why",
		Long: "Shows what pods have cost since Heliostat started, by RayCluster, group, owner, Ray job or cause:\n" +
			"what work used, what requests reserved, and what was idle, starting, leaving or lost. Below the\n" +
			"table is what is idle now, with a command that helps. -o csv is for spreadsheets. Prometheus has\n" +
			"the costs of any other time (docs/howto/costs.md).\n\n" + connect.Help,
		Example: "  autoscaler costs\n  autoscaler costs --by owner\n" +
			"  autoscaler costs -n ml --by cause -o csv",
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	f := cmd.Flags()
	flags.server.AddTo(cmd)
	flags.server.ListsAll(cmd)
	addCSVOutput(cmd, &flags.output)
	f.StringVar(&flags.by, "by", "cluster", "cluster, group, owner, job or cause")
	cli.ValidateString(f, "by", &flags.by, "cluster, group, owner, job or cause",
		func(word string) bool { return apiv1.CostsBy(word).Valid() })
	cli.CompleteFlag(cmd, "by", cobra.FixedCompletions([]string{"cluster", "group", "owner", "job", "cause"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *costsFlags) run(cmd *cobra.Command) error {
	write, err := writerOrCSV(f.output, printer.WriteCosts(table.LookOf(cmd.OutOrStdout(), f.output)),
		printer.WriteCostsCSV)
	if err != nil {
		return err
	}
	api, err := f.server.Client()
	if err != nil {
		return err
	}
	costs, err := api.Costs(cmd.Context(), apiv1.CostsBy(f.by), f.server.Namespace)
	if err != nil {
		return err
	}
	if len(costs.Items) == 0 {
		writeNote(cmd, f.server.EmptyNamespace(cmd.Context(), api))
	}
	return write(cmd.OutOrStdout(), costs)
}

// csvOutputs are the formats of lists that fit in a spreadsheet.
var csvOutputs = []string{"table", "json", "yaml", "csv"}

const wantCSVOutputs = "table, json, yaml or csv"

// addCSVOutput adds --output with these formats.
func addCSVOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", wantCSVOutputs)
	cli.CompleteFlag(cmd, "output", cobra.FixedCompletions(csvOutputs, cobra.ShellCompDirectiveNoFileComp))
}

// writerOrCSV is cli.WriterOf with one more format: csv.
func writerOrCSV[T any](output string, table, csv func(io.Writer, T) error) (func(io.Writer, T) error, error) {
	if output == "csv" {
		return csv, nil
	}
	write, err := cli.WriterOf(output, table)
	if err != nil || output == "wide" {
		return nil, cli.BadInput(fmt.Errorf("--output %q: want %s", output, wantCSVOutputs))
	}
	return write, nil
}

// validateSince makes the flag accept what the server accepts.
func validateSince(flags *pflag.FlagSet, since *string) {
	cli.ValidateString(flags, "since", since, apiv1.WantSince, func(text string) bool {
		_, valid := apiv1.ReadSince(text)
		return valid
	})
}
