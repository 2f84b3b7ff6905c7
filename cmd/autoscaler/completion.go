package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completeTimeout bounds what a shell waits for names: a person is typing.
const completeTimeout = 2 * time.Second

// shells write the completion of each shell.
var shells = map[string]func(*cobra.Command, io.Writer) error{
	"bash":       func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) },
	"zsh":        func(root *cobra.Command, out io.Writer) error { return root.GenZshCompletion(out) },
	"fish":       func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) },
	"powershell": func(root *cobra.Command, out io.Writer) error { return root.GenPowerShellCompletionWithDesc(out) },
}

func newCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Writes what a shell needs to complete commands, flags and names of RayClusters",
		Long: "Writes a script for the shell. Names of RayClusters are asked of the server while you type.\n" +
			"For kubectl, put an executable file kubectl_complete-heliostat into the PATH that runs: kubectl-heliostat __complete \"$@\"",
		Example:   "  autoscaler completion bash > autoscaler.bash",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return badInput{fmt.Errorf("shell %q: want one of bash, zsh, fish and powershell", strings.Join(args, " "))}
			}
			return shells[args[0]](cmd.Root(), cmd.OutOrStdout())
		},
	}
}

// completeOutput completes -o of a command that has it, for which a shell would offer files.
func completeOutput(cmd *cobra.Command) {
	if cmd.Flags().Lookup("output") == nil {
		return
	}
	forms := cobra.FixedCompletions([]string{"table", "wide", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", forms); err != nil {
		panic(err) // it is registered a second time
	}
}

// completeCluster completes a RayCluster: NAME in the namespace of the flags, NAMESPACE/NAME without one.
func (f *serverFlags) completeCluster(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeTimeout)
	defer cancel()
	client, err := f.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	clusters, err := client.Clusters(ctx, f.namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, c := range clusters {
		name := c.Namespace + "/" + c.Name
		if f.namespace != "" {
			name = c.Name
		}
		if strings.HasPrefix(name, typed) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
