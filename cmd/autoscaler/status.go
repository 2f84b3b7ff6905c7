package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// showFlags are the flags of commands that show what a server knows about one RayCluster or all of them.
type showFlags struct {
	server cli.ServerFlags
	output string
}

func newStatusCommand() *cobra.Command {
	var flags showFlags
	cmd := &cobra.Command{
		Use: "status [RAYCLUSTER]",
		// Earlier releases had a command for the comparison that is part of the status.
		SuggestFor: []string{"shadow"},
		Short:      "Shows all RayClusters, or one with its groups, demand, reasons and recent changes",
		Long: "Shows the state and decisions of Heliostat: all RayClusters with one line each, or one in detail.\n" +
			"In tables, - means unknown.\n\n" +
			cli.ServerHelp,
		Example: `  autoscaler status
  autoscaler status llm -n ml
  autoscaler status ml/llm -o yaml`,
		Args: cli.Arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return statusOfFleet(&flags, cmd)
			}
			return statusOfCluster(&flags, cmd, args[0])
		},
	}
	flags.server.AddTo(cmd)
	cli.Output(cmd.Flags(), &flags.output, cli.Outputs...)
	return cmd
}

func statusOfFleet(f *showFlags, cmd *cobra.Command) error {
	api, err := f.server.Client()
	if err != nil {
		return err
	}
	clusters, err := api.Clusters(cmd.Context(), f.server.Namespace)
	if err != nil {
		return err
	}
	list := apiv1.ClusterList{Items: apiv1.List(clusters)}
	return printer.Write(cmd.OutOrStdout(), f.output, list, printer.WriteFleet)
}

func statusOfCluster(f *showFlags, cmd *cobra.Command, argument string) error {
	key, api, err := f.server.Target(argument)
	if err != nil {
		return err
	}
	cluster, err := api.Status(cmd.Context(), key)
	if err != nil {
		return err
	}
	return printer.Write(cmd.OutOrStdout(), f.output, cluster, printer.WriteCluster)
}

// noteStaleness writes a note to standard error if Ray's state cannot be read: an answer about a request or about
// demand is as old as the last reading.
func noteStaleness(cmd *cobra.Command, api *apiv1.Client, key nodepool.ClusterKey) {
	cluster, err := api.Status(cmd.Context(), key)
	if err != nil {
		return // a user with the right to request may lack the right to read the status
	}
	writeNote(cmd, printer.NotRead(cluster))
}

// writeNote writes a note, if there is one, to standard error: programs read standard output.
func writeNote(cmd *cobra.Command, note string) {
	if note != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: note: %s\n", cmd.Root().Name(), printer.Printable(note))
	}
}
