package main

import (
	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
)

func newResumeCommand() *cobra.Command {
	var server cli.ServerFlags
	output := "table"
	cmd := &cobra.Command{
		Use:   "resume RAYCLUSTER",
		Short: "Resumes a RayCluster that was suspended because it was idle",
		Long: "Sets spec.suspend of the RayCluster to false if Heliostat set it; the operator then starts the head.\n" +
			"Time without work counts from now. Requires permission to patch the RayCluster.\n\n" +
			cli.ServerHelp,
		Example: "  autoscaler resume ml/llm",
		Args:    cli.ExactlyOneCluster,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		write := cli.WriterOf(output, printer.WriteResumed)
		key, api, err := server.Target(args[0])
		if err != nil {
			return err
		}
		now, err := api.Resume(cmd.Context(), key)
		if err != nil {
			return err
		}
		return write(cmd.OutOrStdout(), printer.Resumed{Namespace: key.Namespace, Name: key.Name, Suspended: now})
	}
	server.AddTo(cmd)
	cli.Output(cmd.Flags(), &output, cli.Outputs...)
	server.CompleteCluster(cmd)
	return cmd
}
