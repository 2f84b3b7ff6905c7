package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/connect"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/cli/watch"
)

func newForecastCommand() *cobra.Command {
	var flags watch.Flags
	cmd := &cobra.Command{
		Use:   "forecast RAYCLUSTER",
		Short: "Shows what would be worth keeping ready of a RayCluster, and why",
		Long: "Shows how many workers of each group will probably be needed one start time ahead, by the same time\n" +
			"of the last weeks or days, and what keeping them ready would have saved in the last week. The first\n" +
			"line says whether Heliostat keeps them ready, and if not, why.\n\n" + connect.Help,
		Example: "  autoscaler forecast llm -n ml\n  autoscaler forecast ml/llm -o json",
		Args:    cli.ExactlyOneCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			key, api, err := flags.Server.Target(args[0])
			if err != nil {
				return err
			}
			as := flags.Look(cmd.OutOrStdout(), false)
			write, err := cli.WriterOf(flags.Output, printer.WriteForecast(as))
			if err != nil {
				return err
			}
			return flags.Show(cmd, as, api, key, func(ctx context.Context, out io.Writer) error {
				forecast, err := api.Forecast(ctx, key)
				if err != nil {
					return err
				}
				return write(out, forecast)
			})
		},
	}
	flags.AddTo(cmd)
	return cmd
}
