package main

import (
	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
)

func newFreezeCommand() *cobra.Command {
	return freezeCommand(true, &cobra.Command{
		Use:   "freeze RAYCLUSTER",
		Short: "Stops Heliostat from writing to a RayCluster until it is unfrozen",
		Long: "Within a second, Heliostat stops launching and removing workers of the RayCluster, and refuses its\n" +
			"plain request. It accepts requests with an id, but serves them only with the existing workers. It\n" +
			"continues to plan and to show status. Ray and KubeRay are not affected. Requires permission to patch\n" +
			"the RayCluster.\n\n" +
			cli.ServerHelp,
		Example: "  autoscaler freeze ml/llm\n  autoscaler unfreeze ml/llm",
	})
}

func newUnfreezeCommand() *cobra.Command {
	return freezeCommand(false, &cobra.Command{
		Use:   "unfreeze RAYCLUSTER",
		Short: "Allows Heliostat to write to a frozen RayCluster again",
		Long: "Heliostat scales the RayCluster again, as its mode says. Requires permission to patch the\n" +
			"RayCluster.\n\n" +
			cli.ServerHelp,
		Example: "  autoscaler unfreeze ml/llm",
	})
}

func freezeCommand(freeze bool, cmd *cobra.Command) *cobra.Command {
	var server cli.ServerFlags
	output := "table"
	cmd.Args = cli.ExactlyOneCluster
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		write := printer.WriterOf(output, printer.Look{}, printer.WriteFrozen)
		key, api, err := server.Target(args[0])
		if err != nil {
			return err
		}
		now, err := api.SetFreeze(cmd.Context(), key, freeze)
		if err != nil {
			return err
		}
		return write(cmd.OutOrStdout(), printer.Frozen{Namespace: key.Namespace, Name: key.Name, Frozen: now})
	}
	server.AddTo(cmd)
	cli.Output(cmd.Flags(), &output, cli.Outputs...)
	server.CompleteCluster(cmd)
	return cmd
}

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
		write := printer.WriterOf(output, printer.Look{}, printer.WriteResumed)
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
