package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/connect"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// errNobodyConfirms says that manage has nobody to ask.
var errNobodyConfirms = errors.New("standard input is not a terminal, so nobody can confirm: use --yes to skip the " +
	"confirmation")

// errNotConfirmed says that manage asked, and was not told to go on.
var errNotConfirmed = errors.New("not confirmed: nothing was changed")

// newManageCommand makes the command; asks reports whether a person can be asked at in.
func newManageCommand(asks func(in io.Reader) bool) *cobra.Command {
	var server connect.ServerFlags
	output, yes := "table", false
	cmd := &cobra.Command{
		Use:   "manage RAYCLUSTER",
		Short: "Shows what Heliostat would do with a RayCluster, and enables scaling",
		Long: "Shows the plan, asks for confirmation, and sets the annotation heliostat.dev/mode of the RayCluster " +
			"to managed. It also says what would\nstill prevent scaling, such as a freeze or Ray's own autoscaler " +
			"beside the head. Requires permission to patch the RayCluster. If you\nmanage manifests in a repository, " +
			"set the annotation there.\n\n" + connect.Help,
		Example: "  autoscaler manage ml/llm --yes\n  autoscaler unmanage ml/llm",
		Args:    cli.ExactlyOneCluster,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		write, err := cli.WriterOf(output, printer.WriteModeSet)
		if err != nil {
			return err
		}
		key, api, err := server.Target(args[0])
		if err != nil {
			return err
		}
		cluster, err := api.Status(cmd.Context(), key)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if output != "table" {
			out = cmd.ErrOrStderr() // what is asked of a person is no part of the answer to a program
		}
		if err := printer.WriteOptIn(out, cluster); err != nil {
			return err
		}
		if !yes && cluster.Mode != nodepool.Managed {
			if err := confirm(cmd.InOrStdin(), out, asks, fmt.Sprintf("Let Heliostat scale %s?", key)); err != nil {
				return err
			}
		}
		mode, err := api.SetManaged(cmd.Context(), key, true)
		if err != nil {
			return err
		}
		answer := printer.ModeSet{Namespace: key.Namespace, Name: key.Name, Mode: mode}
		if cluster.OptIn != nil {
			answer.Obstacle = cluster.OptIn.Obstacle
		}
		return write(cmd.OutOrStdout(), answer)
	}
	server.AddTo(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().StringVarP(&output, "output", "o", output, cli.OutputUsage)
	server.CompleteCluster(cmd)
	return cmd
}

func newUnmanageCommand() *cobra.Command {
	var server connect.ServerFlags
	output := "table"
	cmd := &cobra.Command{
		Use:   "unmanage RAYCLUSTER",
		Short: "Stops Heliostat from scaling a RayCluster; it continues to plan",
		Long: "Sets the annotation heliostat.dev/mode of the RayCluster to shadow, which overrides its namespace and " +
			"`serve --mode`. Within a second\nHeliostat stops writing to it. Its workers stay. Requires permission " +
			"to patch the RayCluster.\n\n" + connect.Help,
		Example: "  autoscaler unmanage ml/llm",
		Args:    cli.ExactlyOneCluster,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		write, err := cli.WriterOf(output, printer.WriteModeSet)
		if err != nil {
			return err
		}
		key, api, err := server.Target(args[0])
		if err != nil {
			return err
		}
		mode, err := api.SetManaged(cmd.Context(), key, false)
		if err != nil {
			return err
		}
		return write(cmd.OutOrStdout(), printer.ModeSet{Namespace: key.Namespace, Name: key.Name, Mode: mode})
	}
	server.AddTo(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", output, cli.OutputUsage)
	server.CompleteCluster(cmd)
	return cmd
}

// isTerminalIn reports whether a person can answer at in.
func isTerminalIn(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor fits
}

// confirm asks a question that only y or yes answers with yes.
func confirm(in io.Reader, out io.Writer, asks func(io.Reader) bool, question string) error {
	if !asks(in) {
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
