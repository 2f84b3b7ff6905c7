package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/kit"
)

// buildCommand builds parts ahead of their use and prints where they are.
func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build [PART|ray-VERSION]...",
		Short: "Build parts and print their paths; by default those of a cluster",
		Long: fmt.Sprintf("Build parts and print a line with name and path for each; progress goes to stderr.\n"+
			"Parts: %v, ray-VERSION with a VERSION of %v.\n"+
			"Without arguments: what a cluster with default options needs.",
			kit.Parts(), kit.RayVersions()),
		RunE: func(cmd *cobra.Command, args []string) error {
			needs, err := parseNeeds(args)
			if err != nil {
				return err
			}
			built, err := kit.Ensure(cmd.Context(), needs, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			for _, part := range needs.Parts {
				fmt.Fprintln(cmd.OutOrStdout(), part, built.Bin(part))
			}
			for _, version := range needs.Ray {
				fmt.Fprintln(cmd.OutOrStdout(), "ray-"+version, built.RayEnv(version))
			}
			return nil
		},
	}
}

// parseNeeds turns the names on a command line into needs; no names mean those of a default cluster.
func parseNeeds(names []string) (devcluster.Needs, error) {
	if len(names) == 0 {
		return devcluster.Options{}.Needs()
	}
	var needs devcluster.Needs
	for _, name := range names {
		version, isRay := strings.CutPrefix(name, "ray-")
		switch {
		case isRay && slices.Contains(kit.RayVersions(), version):
			needs.Ray = append(needs.Ray, version)
		case slices.Contains(kit.Parts(), devcluster.Part(name)):
			needs.Parts = append(needs.Parts, devcluster.Part(name))
		default:
			return devcluster.Needs{}, fmt.Errorf(
				"part %q is unknown; known are %v and ray-VERSION with a VERSION of %v", name, kit.Parts(),
				kit.RayVersions())
		}
	}
	return needs, nil
}

// kubectlCommand becomes kubectl, for machines without one.
func kubectlCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "kubectl [--name NAME] ARGUMENT...",
		Short: "Run kubectl against a cluster",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := directory(name)
			if err != nil {
				return err
			}
			if devcluster.Owner(dir) == 0 {
				return fmt.Errorf("cluster %q does not run", name)
			}
			built, err := kit.Ensure(cmd.Context(), devcluster.Needs{Parts: []devcluster.Part{kit.Kubectl}},
				cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			env := append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"))
			return syscall.Exec(built.Bin(kit.Kubectl), append([]string{"kubectl"}, args...), env)
		},
	}
	nameFlag(cmd, &name)
	cmd.Flags().SetInterspersed(false)
	return cmd
}
