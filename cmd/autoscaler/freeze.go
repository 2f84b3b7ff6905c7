package main

import (
	"context"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
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
	return clusterCommand(cmd, printer.WriteFrozen,
		func(ctx context.Context, api *apiv1.Client, key nodepool.ClusterKey) (*printer.Frozen, error) {
			now, err := api.SetFreeze(ctx, key, freeze)
			return &printer.Frozen{Namespace: key.Namespace, Name: key.Name, Frozen: now}, err
		})
}

// clusterCommand completes a command that makes one call about one RayCluster. text writes the answer for
// people; the command writes nothing if it is nil.
func clusterCommand[T any](
	cmd *cobra.Command,
	text func(*printer.Page, T),
	call func(ctx context.Context, api *apiv1.Client, key nodepool.ClusterKey) (*T, error),
) *cobra.Command {
	var server cli.ServerFlags
	var output string
	cmd.Args = cli.Arguments(1, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		key, api, err := server.Target(args[0])
		if err != nil {
			return err
		}
		answer, err := call(cmd.Context(), api, key)
		if err != nil || answer == nil {
			return err
		}
		return printer.Write(cmd.OutOrStdout(), output, *answer, text)
	}
	server.AddTo(cmd)
	cli.Output(cmd.Flags(), &output, cli.Outputs...)
	return cmd
}
