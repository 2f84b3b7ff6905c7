package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/kit"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

// clusterFlags are the flags that say what a cluster has.
type clusterFlags struct {
	name       string
	nodes      string
	ray        []string
	images     map[string]string
	kwok       bool
	noOperator bool
	keepLogs   bool
	// readyFD is the file descriptor on which a background process reports to the one that started it; 0 for none.
	readyFD int
}

// add adds the flags to a command.
func (f *clusterFlags) add(cmd *cobra.Command) {
	nameFlag(cmd, &f.name)
	cmd.Flags().StringVar(&f.nodes, "nodes", "", "file with the nodes (default: those of nodes.yaml)")
	cmd.Flags().
		StringSliceVar(&f.ray, "ray", nil, fmt.Sprintf(
			"versions of Ray that pods can run, of %v (default %s; empty: none)",
			kit.RayVersions(), devcluster.DefaultRay))
	cmd.Flags().StringToStringVar(&f.images, "image", nil, "further images: NAME=DIRECTORY with the image's programs")
	cmd.Flags().BoolVar(&f.kwok, "kwok", false, "add kwok, which plays nodes annotated kwok.x-k8s.io/node=fake")
	cmd.Flags().BoolVar(&f.noOperator, "no-operator", false, "leave the KubeRay operator out")
	cmd.Flags().BoolVar(&f.keepLogs, "keep-logs", false, "keep the logs when the cluster ends")
	cmd.Flags().IntVar(&f.readyFD, "ready-fd", 0, "")
	if err := cmd.Flags().MarkHidden("ready-fd"); err != nil {
		panic(err) // the flag was added above
	}
}

// args returns the flags as a command line, for the same command in the background.
func (f *clusterFlags) args() []string {
	args := []string{"--name=" + f.name}
	if f.nodes != "" {
		args = append(args, "--nodes="+f.nodes)
	}
	if f.ray != nil {
		args = append(args, "--ray="+strings.Join(f.ray, ","))
	}
	for image, dir := range f.images {
		args = append(args, "--image="+image+"="+dir)
	}
	for flag, set := range map[string]bool{"--kwok": f.kwok, "--no-operator": f.noOperator, "--keep-logs": f.keepLogs} {
		if set {
			args = append(args, flag)
		}
	}
	return args
}

// options turns the flags into the options of a cluster.
func (f *clusterFlags) options(out io.Writer) (devcluster.Options, error) {
	dir, err := directory(f.name)
	if err != nil {
		return devcluster.Options{}, err
	}
	options := devcluster.Options{
		Dir: dir, Ray: f.ray, Images: f.images, Kwok: f.kwok, NoOperator: f.noOperator, KeepLogs: f.keepLogs, Out: out,
	}
	if f.nodes == "" {
		return options, nil
	}
	file, err := os.Open(f.nodes)
	if err != nil {
		return devcluster.Options{}, fmt.Errorf("reading the nodes: %w", err)
	}
	defer file.Close()
	options.Nodes, err = nodeagent.LoadNodes(file)
	return options, err
}

// runCommand runs a cluster in the foreground.
func runCommand() *cobra.Command {
	var flags clusterFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a cluster until interrupted",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := flags.options(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			if flags.readyFD == 0 {
				return runCluster(cmd.Context(), options, func(c *devcluster.Cluster, took time.Duration) {
					describe(cmd.OutOrStdout(), flags.name, c.Kubeconfig(), took)
				})
			}
			// The cluster's own processes must not hold the report open: its reader waits for the end.
			syscall.CloseOnExec(flags.readyFD)
			report := os.NewFile(uintptr(flags.readyFD), "ready")
			err = runCluster(cmd.Context(), options, func(*devcluster.Cluster, time.Duration) { report.Close() })
			if err != nil {
				fmt.Fprintln(report, err) // the reader learns it from here; once ready, nobody reads
			}
			return err
		},
	}
	flags.add(cmd)
	return cmd
}

// runCluster holds a cluster until ctx ends, or a part of it has, which nobody would start again.
func runCluster(ctx context.Context, options devcluster.Options, ready func(*devcluster.Cluster, time.Duration)) error {
	began := time.Now()
	cluster, err := devcluster.Start(ctx, options)
	if err != nil {
		return err
	}
	ready(cluster, time.Since(began))
	var ended error
	select {
	case <-ctx.Done():
	case death := <-cluster.Deaths():
		ended = fmt.Errorf("the cluster is stopped, because it cannot go on without %s; start it again", death.Part)
	}
	// A second interrupt must not leave processes behind, so stopping has its own time.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(ended, cluster.Stop(ending))
}

// describe says how to use a running cluster.
func describe(out io.Writer, name, kubeconfig string, took time.Duration) {
	fmt.Fprintf(out, "Dev cluster %q is ready", name)
	if took > 0 {
		fmt.Fprintf(out, " after %.1f s", took.Seconds())
	}
	fmt.Fprintf(out, ". From the root of the repository:\n  export KUBECONFIG=%s\n", kubeconfig)
	fmt.Fprintf(
		out,
		"  kubectl get nodes,rayclusters -A    # without kubectl: "+
			"(cd test/devcluster && go run ./cmd/devcluster kubectl --name=%s get nodes)\n",
		name,
	)
	fmt.Fprintf(out, "  kubectl apply --server-side -f deploy/chart/crds    # requests of owners\n")
	fmt.Fprintf(out, "  kubectl create namespace ray\n")
	fmt.Fprintf(out, "  kubectl apply -f test/demo/raycluster.yaml    # a RayCluster\n")
	fmt.Fprintf(out, "  export CGO_ENABLED=0 GOFLAGS=-trimpath    # as make builds, so nothing is compiled twice\n")
	fmt.Fprintf(
		out,
		"  go run ./cmd/autoscaler serve --insecure-no-auth    "+
			"# Heliostat for it; the page is at http://127.0.0.1:8090/\n",
	)
	fmt.Fprintf(out, "  go run ./cmd/autoscaler status --server http://127.0.0.1:8090    # in a second terminal\n")
	fmt.Fprintf(out,
		"  go run ./cmd/autoscaler manage ray/demo --server http://127.0.0.1:8090    # lets it scale that RayCluster\n")
	fmt.Fprintf(out, "  (cd test/devcluster && go run ./cmd/devcluster down --name=%s)\n", name)
}
