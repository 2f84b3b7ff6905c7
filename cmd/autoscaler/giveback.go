package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

func newGiveBackCommand() *cobra.Command {
	var server cli.ServerFlags
	var ask giveback.Ask
	var hold time.Duration
	output, within, end := "table", giveback.DefaultDeadline, false
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
		Args: cli.ExactlyOneCluster,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		write := printer.WriterOf(output, printer.Look{}, printer.WriteGiveBack)
		asks := cmd.Flags().Changed("gpus")
		ask.DeadlineSeconds = int64(within.Seconds())
		if hold > 0 {
			ask.Until = time.Now().Add(hold).UTC().Truncate(time.Second)
		}
		switch {
		case asks && ask.GPUs < 1:
			return cli.BadInput(fmt.Errorf("--gpus: want how many GPUs to give back, is %d", ask.GPUs))
		case asks && (ask.Group == "") == (ask.Pool == ""):
			return cli.BadInput(errors.New("--gpus: want either --group or --pool beside it"))
		case within < giveback.MinDeadline || within > giveback.MaxDeadline:
			return cli.BadInput(fmt.Errorf("--within: want %v to %v, is %v", giveback.MinDeadline,
				giveback.MaxDeadline, within))
		case hold != 0 && hold < within+time.Minute:
			return cli.BadInput(fmt.Errorf("--for: want at least a minute longer than --within (%v), is %v", within,
				hold))
		case !asks:
			for _, flag := range []string{"group", "pool", "within", "for", "force", "dry-run"} {
				if cmd.Flags().Changed(flag) {
					return cli.BadInput(fmt.Errorf("--%s: want --gpus beside it", flag))
				}
			}
		}
		key, api, err := server.Target(args[0])
		if err != nil {
			return err
		}
		var now giveback.State
		switch {
		case end:
			if err = api.EndGiveBack(cmd.Context(), key); err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: the reservation is ended\n", key)
			}
			return err
		case asks:
			now, err = api.GiveBack(cmd.Context(), key, ask)
		default:
			now, err = api.GivenBack(cmd.Context(), key)
		}
		if err != nil {
			return err
		}
		return write(cmd.OutOrStdout(), now)
	}
	flags := cmd.Flags()
	flags.Int64Var(&ask.GPUs, "gpus", 0, "how many GPUs to give back")
	flags.StringVar(&ask.Group, "group", "", "the worker group that gives them")
	flags.StringVar(&ask.Pool, "pool", "", "the node pool on which the workers run")
	flags.DurationVar(&within, "within", within, "how long the work has to move or to end")
	flags.DurationVar(&hold, "for", 0, "how long the groups are held down (default until --end)")
	flags.BoolVar(&ask.Force, "force", false, "also end work that cannot move, when that time is over")
	flags.BoolVar(&ask.DryRun, "dry-run", false, "only show what would be given back")
	flags.BoolVar(&end, "end", false, "end the reservation, so that the groups may grow again")
	cmd.MarkFlagsMutuallyExclusive("gpus", "end")
	server.AddTo(cmd)
	cli.Output(flags, &output, cli.Outputs...)
	server.CompleteCluster(cmd)
	return cmd
}
