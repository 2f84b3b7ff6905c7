package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/kit"
)

// upCommand starts a cluster in the background.
func upCommand() *cobra.Command {
	var flags clusterFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster in the background, building what is missing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context(), cmd.OutOrStdout(), &flags)
		},
	}
	flags.add(cmd)
	return cmd
}

// up builds in the foreground, where progress can be seen, and hands the rest to a background process.
func up(ctx context.Context, out io.Writer, flags *clusterFlags) error {
	options, err := flags.options(out)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(options.Dir, "kubeconfig")
	if pid := devcluster.Owner(options.Dir); pid != 0 {
		fmt.Fprintf(out, "It already runs, as process %d.\n", pid)
		describe(out, flags.name, kubeconfig, 0)
		return nil
	}
	needs, err := options.Needs()
	if err != nil {
		return err
	}
	if _, err := kit.Ensure(ctx, needs, out); err != nil {
		return err
	}
	began := time.Now()
	fmt.Fprintf(out, "Starting dev cluster %q: %s; most often it takes 10 to 30 s.\n", flags.name, starts(options))
	if err := startInBackground(ctx, out, options.Dir, flags); err != nil {
		return err
	}
	describe(out, flags.name, kubeconfig, time.Since(began))
	return nil
}

// starts names what a start waits for.
func starts(options devcluster.Options) string {
	if options.NoOperator {
		return "control plane and nodes"
	}
	return "control plane, KubeRay operator and nodes"
}

// outputFile collects what the background process of a cluster prints. It lies beside the cluster's directory.
func outputFile(dir string) string { return dir + ".out" }

// startInBackground starts `run` in a session of its own and waits until its cluster is ready, telling
// on out what it waits for.
func startInBackground(ctx context.Context, out io.Writer, dir string, flags *clusterFlags) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	output, err := os.Create(outputFile(dir))
	if err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	defer output.Close()
	report, child, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	defer report.Close()
	cmd := exec.Command(self, append([]string{"run", "--ready-fd=3"}, flags.args()...)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = output, output, []*os.File{child}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	child.Close()
	if err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	// An interrupt ends the start: the background process has its own session and would not see it.
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })() // gone already is as good
	defer repeatWaits(out, outputFile(dir))()
	said, err := io.ReadAll(report)
	if err != nil {
		return fmt.Errorf("waiting for the cluster: %w", err)
	}
	if text := strings.TrimSpace(string(said)); text != "" {
		return errors.New(text)
	}
	if devcluster.Owner(dir) == 0 {
		return fmt.Errorf("the cluster's process ended; it said: %s", tail(outputFile(dir)))
	}
	return nil
}

// repeatWaits repeats on out what the background process says that it waits for, until the function that it returns is
// called.
func repeatWaits(out io.Writer, path string) (done func()) {
	ended := make(chan struct{})
	var repeating sync.WaitGroup
	repeating.Go(func() {
		for printed := 0; ; {
			select {
			case <-ended:
				return
			case <-time.After(time.Second):
			}
			text, err := os.ReadFile(path)
			if err != nil {
				continue // the next look reports it, or the process has ended and cleaned up
			}
			for line := range strings.Lines(string(text[min(printed, len(text)):])) {
				if strings.HasPrefix(line, devcluster.AwaitingPrefix) && strings.HasSuffix(line, "\n") {
					fmt.Fprint(out, line)
				}
			}
			printed = bytes.LastIndexByte(text, '\n') + 1
		}
	})
	return func() {
		close(ended)
		repeating.Wait()
	}
}

// tail returns the end of a file, as far as a person wants to read it.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return strings.TrimSpace(string(data[max(0, len(data)-most):]))
}
