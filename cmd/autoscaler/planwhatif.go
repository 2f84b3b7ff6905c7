package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
)

// besideCluster is the error of a flag for snapshot files on a command line with a RayCluster.
func besideCluster(flag, value, cluster string) error {
	return fmt.Errorf("%s %q cannot be combined with a RayCluster, here %q: want one of the two", flag, value, cluster)
}

// runLive asks the server for the plan of a RayCluster, with the changes of --what-if if there are any.
func (f planFlags) runLive(cmd *cobra.Command, argument string) error {
	switch {
	case f.snapshot != "":
		return cli.BadInput(besideCluster("--snapshot", f.snapshot, argument))
	case f.nodes.Given():
		return cli.BadInput(cli.ErrServerReadsNodes)
	}
	write := cli.WriterOf(f.Output, printer.WriteSupposed)
	supposition, err := f.supposition(cmd.InOrStdin())
	if err != nil {
		return cli.BadInput(err)
	}
	key, api, err := f.Server.Target(argument)
	if err != nil {
		return err
	}
	return f.Show(cmd, printer.Look{}, api, key, func(ctx context.Context, out io.Writer) error {
		answer, err := api.Plan(ctx, key, supposition)
		if err != nil {
			return err
		}
		return write(out, answer)
	})
}

// supposition returns the body of the call; an empty object stands for the present plan.
func (f planFlags) supposition(stdin io.Reader) (json.RawMessage, error) {
	if f.whatIf == "" {
		return json.RawMessage("{}"), nil
	}
	return bodyOfFile(f.whatIf, "the what-if changes", stdin)
}

// mostBody limits a file with the body of a call, in bytes: YAML with comments around as much JSON as a server accepts.
const mostBody = 4 << 20

// bodyOfFile reads the body of a call, JSON or YAML; what names it in errors.
func bodyOfFile(name, what string, stdin io.Reader) (body json.RawMessage, err error) {
	err = cli.ReadFile(name, what, stdin, mostBody, func(in io.Reader) error {
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		body, err = yaml.YAMLToJSONStrict(text)
		if err == nil && string(body) == "null" {
			err = errors.New("it is empty: want the body of a call, as JSON or YAML")
		}
		return err
	})
	return body, err
}
