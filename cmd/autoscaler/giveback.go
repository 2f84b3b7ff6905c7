package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

func newGiveBackCommand() *cobra.Command {
	var ask giveback.Ask
	var hold time.Duration
	within, end := giveback.DefaultDeadline, false
	cmd := &cobra.Command{
		Use:   "give-back RAYCLUSTER [--gpus N (--group NAME | --pool NAME) | --end]",
		Short: "Takes GPUs from a RayCluster for a while, or shows what it gives back",
		Long: "Chooses the workers whose loss costs least and that have exactly that many GPUs: idle ones first,\n" +
			"then those whose work Ray moves, then, with --force, those that have worked for the shortest time. It\n" +
			"drains them, removes each when it is empty, and holds their groups down for --for, or until --end. It\n" +
			"never goes below minReplicas. Without --gpus, it shows what becomes of the reservation. Requires\n" +
			"permission to patch the RayCluster.\n\n" +
			cli.ServerHelp,
		Example: "  autoscaler give-back ml/llm --gpus 8 --group h100 --dry-run\n" +
			"  autoscaler give-back ml/llm --gpus 8 --group h100 --within 10m --for 2h\n" +
			"  autoscaler give-back ml/llm\n" +
			"  autoscaler give-back ml/llm --end",
	}
	flags := cmd.Flags()
	flags.Int64Var(&ask.GPUs, "gpus", 0, "how many GPUs to give back")
	flags.StringVar(&ask.Group, "group", "", "the worker group that gives them")
	flags.StringVar(&ask.Pool, "pool", "", "the node pool on which the workers run")
	cli.Duration(flags, &within, "within", giveback.MinDeadline, giveback.MaxDeadline,
		"how long the work has to move or to end")
	cli.Duration(flags, &hold, "for", 0, 365*24*time.Hour, "how long the groups are held down; 0s means until --end")
	flags.BoolVar(&ask.Force, "force", false, "when the time of --within is over, also end work that cannot move")
	flags.BoolVar(&ask.DryRun, "dry-run", false, "only show what would be given back")
	flags.BoolVar(&end, "end", false, "end the reservation, so that the groups may grow again")
	asking := []string{"gpus", "group", "pool", "within", "for", "force", "dry-run"}
	for _, flag := range asking {
		cmd.MarkFlagsMutuallyExclusive("end", flag)
	}
	output := ""
	cli.Output(flags, &output, cli.Outputs...)
	return clusterCommand(cmd, func(cmd *cobra.Command, api *apiv1.Client, key nodepool.ClusterKey) error {
		var now giveback.State
		var err error
		switch {
		case end:
			if err = api.EndGiveBack(cmd.Context(), key); err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: the reservation is ended\n", key)
			}
			return err
		case !slices.ContainsFunc(asking, flags.Changed):
			now, err = api.GivenBack(cmd.Context(), key)
		default:
			ask.DeadlineSeconds = int64(within.Seconds())
			if hold > 0 {
				ask.Until = time.Now().Add(hold).UTC().Truncate(time.Second)
			}
			now, err = api.GiveBack(cmd.Context(), key, ask)
		}
		if err != nil {
			return err
		}
		return printer.Write(cmd.OutOrStdout(), output, now, printer.WriteGiveBack)
	})
}
