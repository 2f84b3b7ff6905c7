package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
)

// lookForServer limits the search for a server that no flag names.
const lookForServer = 2 * time.Second

// versionFlags are the flags of `version`.
type versionFlags struct {
	server cli.ServerFlags
	output string
	client bool
}

func newVersionCommand() *cobra.Command {
	var flags versionFlags
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Prints version, revision and Go release of this program and of the server",
		Long: "Prints version, revision and Go release of this program and of the server that it finds. If no\n" +
			"server is named and none answers within " + lookForServer.String() +
			", it prints a note on standard error.\n\n" + cli.ServerHelp,
		Example: `  autoscaler version
  autoscaler version --client -o yaml`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.server.AddTo(cmd)
	cli.Output(cmd.Flags(), &flags.output, cli.Outputs...)
	cmd.Flags().BoolVar(&flags.client, "client", false, "do not call a server")
	return cmd
}

func (f *versionFlags) run(cmd *cobra.Command) error {
	write := printer.WriterOf(f.output, printer.Look{}, printer.WriteVersions)
	both := printer.Versions{Client: api.ThisBuild()}
	var err error
	if !f.client {
		both.Server, err = f.ask(cmd.Context())
		if err != nil && !f.server.Named() {
			fmt.Fprintf(cmd.ErrOrStderr(), "no server: %v\n", err)
			err = nil
		}
	}
	return errors.Join(write(cmd.OutOrStdout(), both), err)
}

// ask calls the server; one that no flag names only for a moment.
func (f *versionFlags) ask(ctx context.Context) (*apiv1.Build, error) {
	api, err := f.server.Client()
	if err != nil {
		return nil, err
	}
	if !f.server.Named() {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, lookForServer)
		defer done()
	}
	build, err := api.Version(ctx)
	if err != nil {
		return nil, err
	}
	return &build, nil
}
