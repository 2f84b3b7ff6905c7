package main

import (
	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
)

func newShadowCommand() *cobra.Command {
	var flags showFlags
	cmd := &cobra.Command{
		Use:   "shadow RAYCLUSTER",
		Short: "Compares Heliostat's plan for a RayCluster in shadow mode with another writer's scaling",
		Long: "For a RayCluster in shadow mode, shows how many pods each group has and how many Heliostat would\n" +
			"request, how long the two have agreed, and the latest differences, newest first: how long each\n" +
			"lasted, and the size that both wanted then.\n\n" + cli.ServerHelp,
		Example: "  autoscaler shadow llm -n ml\n  autoscaler shadow ml/llm -o json",
		Args:    cli.Arguments(1, 1),
		RunE:    func(cmd *cobra.Command, args []string) error { return flags.shadow(cmd, args[0]) },
	}
	flags.addTo(cmd)
	return cmd
}

func (f *showFlags) shadow(cmd *cobra.Command, argument string) error {
	key, api, err := f.server.Target(argument)
	if err != nil {
		return err
	}
	compared, err := api.Shadow(cmd.Context(), key)
	if err != nil {
		return err
	}
	return printer.Write(cmd.OutOrStdout(), f.output, compared, printer.WriteShadow)
}
