package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"heliostat.dev/heliostat/test/devcluster"
)

// downTimeout is how long a cluster may take to stop: its pods get time to end.
const downTimeout = 90 * time.Second

// downCommand stops a cluster.
func downCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a cluster and remove all of it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := directory(name)
			if err != nil {
				return err
			}
			pid := devcluster.Owner(dir)
			if pid == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "Dev cluster %q does not run.\n", name)
				return nil
			}
			if err := end(cmd.Context(), dir, pid); err != nil {
				return fmt.Errorf("stopping cluster %q: %w", name, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Dev cluster %q is stopped.\n", name)
			return nil
		},
	}
	nameFlag(cmd, &name)
	return cmd
}

// end asks the process of a cluster to end and waits until it has cleaned up.
func end(ctx context.Context, dir string, pid int) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for devcluster.Owner(dir) != 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for process %d: %w; its output is in %s", pid, ctx.Err(), outputFile(dir))
		}
	}
	if err := os.Remove(outputFile(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// statusCommand lists the clusters of this cache.
func statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the clusters that run",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := devcluster.CacheDir()
			if err != nil {
				return err
			}
			kubeconfigs, err := filepath.Glob(filepath.Join(devcluster.RunDir(cache), "*", "kubeconfig"))
			if err != nil {
				return err
			}
			for _, kubeconfig := range kubeconfigs {
				dir := filepath.Dir(kubeconfig)
				if pid := devcluster.Owner(dir); pid != 0 {
					fmt.Fprintf(cmd.OutOrStdout(), "%s\tprocess %d\t%s\t%s\n", filepath.Base(dir), pid,
						health(cmd.Context(), kubeconfig), kubeconfig)
				}
			}
			return nil
		},
	}
}

// health says in a few words how a cluster is.
func health(ctx context.Context, kubeconfig string) string {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "kubeconfig unreadable"
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "kubeconfig unusable"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "API server does not answer"
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return "API server does not answer"
	}
	return fmt.Sprintf("%s, %d nodes, %d pods", config.Host, len(nodes.Items), len(pods.Items))
}
