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
	clusterCommand(cmd, func(cmd *cobra.Command, api *apiv1.Client, key nodepool.ClusterKey) error {
		cluster, err := api.Status(cmd.Context(), key)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if err := printer.Write(out, "table", cluster, printer.WriteOptIn); err != nil {
			return err
		}
		if !yes && cluster.Mode != nodepool.Managed {
			question := fmt.Sprintf("Let Heliostat scale %s?", key)
			if err := confirm(cmd.InOrStdin(), out, canAnswer, question); err != nil {
				return err
			}
		}
		effect := "Heliostat scales it"
		if cluster.OptIn != nil && cluster.OptIn.Obstacle != nil {
			effect = fmt.Sprintf("Heliostat does not scale it yet (%s)", cluster.OptIn.Obstacle.Code)
		}
		return setManaged(cmd, api, key, true, effect)
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func newUnmanageCommand() *cobra.Command {
	return clusterCommand(&cobra.Command{
		Use:   "unmanage RAYCLUSTER",
		Short: "Stops Heliostat from scaling a RayCluster; it continues to plan",
		Long: "Sets the annotation heliostat.dev/mode of the RayCluster to shadow, which overrides its namespace\n" +
			"and `serve --mode`. Within a second Heliostat stops writing to it. Its workers stay. Requires\n" +
			"permission to patch the RayCluster.\n\n" +
			cli.ServerHelp,
		Example: "  autoscaler unmanage ml/llm",
	}, func(cmd *cobra.Command, api *apiv1.Client, key nodepool.ClusterKey) error {
		return setManaged(cmd, api, key, false, "Heliostat plans for it and scales nothing")
	})
}

// setManaged sets the mode of a RayCluster, and says so with the effect.
func setManaged(cmd *cobra.Command, api *apiv1.Client, key nodepool.ClusterKey, managed bool, effect string) error {
	if err := api.SetManaged(cmd.Context(), key, managed); err != nil {
		return err
	}
	mode := nodepool.Shadow
	if managed {
		mode = nodepool.Managed
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is annotated heliostat.dev/mode: %s: %s\n", key, mode, effect)
	return err
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
