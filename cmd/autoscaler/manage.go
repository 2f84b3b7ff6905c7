package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// errNobodyConfirms is the error of manage without --yes if nobody can answer.
var errNobodyConfirms = errors.New("standard input is not a terminal, so nobody can confirm: use --yes to skip the " +
	"confirmation")

// errNotConfirmed is the error of manage if the answer is not yes.
var errNotConfirmed = errors.New("not confirmed: nothing was changed")

// newManageCommand returns the command. canAnswer reports whether a person can answer questions at in.
func newManageCommand(canAnswer func(in io.Reader) bool) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "manage RAYCLUSTER",
		Short: "Shows what Heliostat would do with a RayCluster, and enables scaling",
		Long: "Shows the plan, asks for confirmation, and sets the annotation heliostat.dev/mode of the RayCluster\n" +
			"to managed. It also says what would still prevent scaling, such as a freeze or Ray's own autoscaler\n" +
			"beside the head, and prints the patch with which the operator deletes only workers that Heliostat\n" +
			"names. Requires permission to patch the RayCluster. If you manage manifests in a\n" +
			"repository, set the annotation there.\n\n" +
			cli.ServerHelp,
		Example: "  autoscaler manage ml/llm --yes\n  autoscaler unmanage ml/llm",
	}
	modeCommand(true, cmd, func(cluster apiv1.Cluster) error {
		out := cmd.OutOrStdout()
		if cmd.Flag("output").Value.String() != "table" {
			out = cmd.ErrOrStderr() // the question is no part of the answer to a program
		}
		err := printer.Write(out, "table", cluster, printer.WriteOptIn)
		if err != nil || yes || cluster.Mode == nodepool.Managed {
			return err
		}
		question := fmt.Sprintf("Let Heliostat scale %s/%s?", cluster.Namespace, cluster.Name)
		return confirm(cmd.InOrStdin(), out, canAnswer, question)
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func newUnmanageCommand() *cobra.Command {
	return modeCommand(false, &cobra.Command{
		Use:   "unmanage RAYCLUSTER",
		Short: "Stops Heliostat from scaling a RayCluster; it continues to plan",
		Long: "Sets the annotation heliostat.dev/mode of the RayCluster to shadow, which overrides its namespace\n" +
			"and `serve --mode`. Within a second Heliostat stops writing to it. Its workers stay. Requires\n" +
			"permission to patch the RayCluster.\n\n" +
			cli.ServerHelp,
		Example: "  autoscaler unmanage ml/llm",
	}, nil)
}

// modeCommand completes a command that makes a RayCluster managed, or shadow. If before is not nil, it runs with the
// RayCluster's status first, and its error stops the command.
func modeCommand(managed bool, cmd *cobra.Command, before func(cluster apiv1.Cluster) error) *cobra.Command {
	return clusterCommand(cmd, printer.WriteModeSet,
		func(ctx context.Context, api *apiv1.Client, key nodepool.ClusterKey) (*printer.ModeSet, error) {
			answer := &printer.ModeSet{Namespace: key.Namespace, Name: key.Name}
			if before != nil {
				cluster, err := api.Status(ctx, key)
				if err != nil {
					return nil, err
				}
				if err := before(cluster); err != nil {
					return nil, err
				}
				if cluster.OptIn != nil {
					answer.Obstacle = cluster.OptIn.Obstacle
				}
			}
			mode, err := api.SetManaged(ctx, key, managed)
			answer.Mode = mode
			return answer, err
		})
}

// isTerminalIn reports whether a person can answer at in.
func isTerminalIn(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor fits
}

// confirm asks a question, and fails unless the answer is y or yes.
func confirm(in io.Reader, out io.Writer, canAnswer func(io.Reader) bool, question string) error {
	if !canAnswer(in) {
		return cli.BadInput(errNobodyConfirms)
	}
	if _, err := fmt.Fprint(out, question+" [y/N] "); err != nil {
		return err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}
