package main

import (
	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
)

func newVersionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Prints version, revision and Go release of this program",
		Example: "  autoscaler version\n  autoscaler version -o yaml",
		Args:    cli.Arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := func(p *printer.Page, b api.Build) { p.Line("", b.String()) }
			return printer.Write(cmd.OutOrStdout(), output, api.ThisBuild(), text)
		},
	}
	cli.Output(cmd.Flags(), &output, cli.Outputs...)
	return cmd
}
