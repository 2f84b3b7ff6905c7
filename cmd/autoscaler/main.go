// Command autoscaler is Heliostat: `serve` scales Ray clusters, `plan` and `explain` show offline what would be decided
// and why.
// Under the name `ray` it stands in for Ray's own autoscaler in the head pod.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	code := run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes of all commands.
const (
	exitOK       = 0
	exitFailed   = 1
	exitBadInput = 2
)

// badInput marks an error that the caller's arguments or files cause.
type badInput struct{ error }

func (b badInput) Unwrap() error { return b.error }

// run executes one command line, argv[0] included, and returns the exit code.
func run(ctx context.Context, argv []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot(filepath.Base(argv[0]))
	root.SetArgs(argv[1:])
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(errOut, "%s: %v\n", root.Name(), err)
	var bad badInput
	if errors.As(err, &bad) {
		return exitBadInput
	}
	return exitFailed
}

// rayName is the name under which KubeRay starts the autoscaler container.
const rayName = "ray"

// newRoot assembles the command for the name the program was called by.
func newRoot(name string) *cobra.Command {
	if name == rayName {
		return group(rayName, "Heliostat in the place of Ray's own autoscaler", rayCommands())
	}
	return group("autoscaler", "Scales Ray clusters on Kubernetes to what Ray asks for", commands())
}

// commands are the subcommands of `autoscaler`, one file each.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newPlanCommand(),
		newExplainCommand(),
		newNodepoolsCommand(),
		newGPUsCommand(askNVML, proc()),
		newAgentCommand(askNVML),
		newDoctorCommand(),
		newServeCommand(),
		newVersionCommand(),
	}
}

// rayCommands are the subcommands that the program answers to under the name `ray`.
func rayCommands() []*cobra.Command {
	return []*cobra.Command{
		newSidecarCommand(),
		newVersionCommand(),
	}
}

// group makes a command that only has subcommands. What cobra itself refuses (an unknown command or flag, too many
// arguments) is bad input.
func group(name, short string, subcommands []*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use: name, Short: short, SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return badInput{fmt.Errorf("unknown command %q; see %s --help", args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return badInput{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(subcommands...)
	return root
}

// noArguments refuses arguments that are not flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return badInput{err}
	}
	return nil
}
