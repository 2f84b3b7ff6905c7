package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/pkg/nodepool"
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
	return clusterCommand(cmd, func(cmd *cobra.Command, api *apiv1.Client, key nodepool.ClusterKey) error {
		if err := api.SetFreeze(cmd.Context(), key, freeze); err != nil {
			return err
		}
		state := "frozen: nothing is written to it"
		if !freeze {
			state = "not frozen"
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is %s\n", key, state)
		return err
	})
}

// clusterCommand completes a command about one RayCluster.
func clusterCommand(
	cmd *cobra.Command, run func(cmd *cobra.Command, api *apiv1.Client, key nodepool.ClusterKey) error,
) *cobra.Command {
	var server cli.ServerFlags
	cmd.Args = cli.Arguments(1, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		key, api, err := server.Target(args[0])
		if err != nil {
			return err
		}
		return run(cmd, api, key)
	}
	server.AddTo(cmd)
	return cmd
}
