// Command devcluster starts, shows and stops dev clusters: a real Kubernetes control plane, the KubeRay operator and
// nodes whose pods are real processes, all on this machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/kit"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1)
	}
}

// root is the command tree.
func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "devcluster",
		Short:         "A real Kubernetes control plane with KubeRay and Ray on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(upCommand(), runCommand(), downCommand(), statusCommand(), buildCommand(), kubectlCommand(),
		preflightCommand())
	return cmd
}

// nameFlag adds the flag that separates clusters of one cache.
func nameFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "name", "default", "name of the cluster")
}

// namePattern keeps names usable as directories, and short: paths of Unix sockets below them are limited.
var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,19}$`)

// directory returns the directory of the cluster with a name.
func directory(name string) (string, error) {
	if !namePattern.MatchString(name) {
		return "", fmt.Errorf("name %q: up to 20 lower case letters, digits and dashes are allowed", name)
	}
	cache, err := devcluster.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(devcluster.RunDir(cache), name), nil
}

// preflightCommand checks the machine.
func preflightCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "preflight",
		Short: "Say in one line what this machine lacks, if anything",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return kit.Preflight() },
	}
}
