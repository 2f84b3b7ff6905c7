package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
)

func newShadowCommand() *cobra.Command {
	var flags watchFlags
	cmd := &cobra.Command{
		Use:   "shadow RAYCLUSTER",
		Short: "Compares Heliostat's plan for a RayCluster in shadow mode with another writer's scaling",
		Long: "For a RayCluster in shadow mode, shows how many pods each group has and how many Heliostat would\n" +
			"request, how long the two have agreed, and the latest differences, newest first: how long each\n" +
			"lasted, and the size that both wanted then.\n\n" + cli.ServerHelp,
		Example: "  autoscaler shadow llm -n ml\n  autoscaler shadow ml/llm -w",
		Args:    cli.ExactlyOneCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			key, api, err := flags.Server.Target(args[0])
			if err != nil {
				return err
			}
			as := printer.LookOf(cmd.OutOrStdout(), flags.Output)
			var cluster apiv1.Cluster
			write := printer.WriterOf(flags.Output, as, func(p *printer.Page, compared apiv1.ShadowComparison) {
				printer.WriteShadow(p, compared, cluster)
			})
			return flags.Show(cmd, api, key, func(ctx context.Context, out io.Writer) error {
				compared, err := api.Shadow(ctx, key)
				if err == nil && len(compared.Groups) == 0 && betweenFrames[flags.Output] == emptyLine {
					cluster, err = api.Status(ctx, key)
				}
				if err != nil {
					return err
				}
				return write(out, compared)
			})
		},
	}
	flags.AddTo(cmd, cli.Outputs...)
	return cmd
}
