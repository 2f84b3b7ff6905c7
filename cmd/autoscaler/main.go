// Command autoscaler is Heliostat. `serve` scales Ray clusters. `plan` and `explain` show offline what `serve` would
// decide, and why. Under the name `ray`, the program replaces Ray's own autoscaler in the head pod. This package must
// not make scaling decisions itself: it parses flags, connects the other packages and prints results.
package main

//go:generate go test . -run TestTheReferenceOfCommandsIsWhatTheySay -update-commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/cmd/autoscaler/engine"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { endWithin(endsWithin, stop, os.Stderr, os.Exit) })
	code := run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// endsWithin is how long after a signal the program is forced to exit: before the kubelet kills it, which the chart
// sets to 10 s.
const endsWithin = 9 * time.Second

// endWithin lets a second signal end the program at once, and forces it to exit after limit. A command that reads a
// pipe without a writer, for example, does not notice a signal.
func endWithin(limit time.Duration, stop func(), errOut io.Writer, exit func(code int)) {
	stop()
	time.Sleep(limit)
	fmt.Fprintf(errOut, "autoscaler: shutdown exceeded %v; forcing exit\n", limit)
	exit(cli.ExitFailed)
}

// errInterrupted is the error of a command that a signal interrupted.
var errInterrupted = errors.New("interrupted; a request that was already sent may still take effect")

// run executes one command line, argv[0] included, and returns the exit code.
func run(ctx context.Context, argv []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot(filepath.Base(argv[0]))
	root.SetArgs(argv[1:])
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	begun := false
	for _, cmd := range root.Commands() {
		do := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			begun = true
			return do(cmd, args)
		}
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return cli.ExitOK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	fmt.Fprintf(errOut, "%s: %v\n", root.Name(), err)
	var bad cli.InputError
	var problem *apiv1.Problem
	// What cobra refuses before a command begins, such as an unknown flag, is bad input.
	if !begun || errors.As(err, &bad) || errors.As(err, &problem) && problem.Status == http.StatusBadRequest {
		return cli.ExitBadInput
	}
	return cli.ExitFailed
}

// rayName is the name under which KubeRay starts the autoscaler container.
const rayName = "ray"

// pluginName is the name under which kubectl finds the program as `kubectl heliostat`; kubectl.exe adds .exe.
const pluginName = "kubectl-heliostat"

// newRoot returns the root command for the name by which the program was called.
func newRoot(name string) *cobra.Command {
	if name == rayName {
		return group(rayName, "Heliostat in the place of Ray's own autoscaler", rayCommands())
	}
	const short = "Heliostat scales Ray clusters on Kubernetes to what Ray asks for"
	if strings.HasPrefix(name, pluginName) {
		root := group(pluginName, short, commands())
		for _, sub := range root.Commands() {
			sub.Example = strings.ReplaceAll(sub.Example, "autoscaler ", "kubectl heliostat ")
		}
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl heliostat"}
		return root
	}
	return group("autoscaler", short, commands())
}

// commands are the subcommands of `autoscaler`, one file each.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newStatusCommand(),
		newExplainCommand(),
		newRequestCommand(),
		newManageCommand(isTerminalIn),
		newUnmanageCommand(),
		newFreezeCommand(),
		newUnfreezeCommand(),
		newGiveBackCommand(),
		newCostsCommand(),
		newPlanCommand(),
		newNodepoolsCommand(),
		newGPUsCommand(askNVML),
		newAgentCommand(askNVML),
		newDoctorCommand(),
		engine.Serve(),
		newVersionCommand(),
	}
}

// rayCommands are the subcommands under the name `ray`.
func rayCommands() []*cobra.Command {
	return []*cobra.Command{
		engine.Sidecar(),
		newVersionCommand(),
	}
}

// group returns a command that only has subcommands.
func group(name, short string, subcommands []*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use: name, Short: short, SilenceUsage: true, SilenceErrors: true, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = api.ThisBuild().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddCommand(subcommands...)
	return root
}
