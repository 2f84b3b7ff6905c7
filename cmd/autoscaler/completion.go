package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
)

// shells generate the completion script of each shell.
var shells = map[string]func(*cobra.Command, io.Writer) error{
	"bash":       func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) },
	"zsh":        func(root *cobra.Command, out io.Writer) error { return root.GenZshCompletion(out) },
	"fish":       func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) },
	"powershell": func(root *cobra.Command, out io.Writer) error { return root.GenPowerShellCompletionWithDesc(out) },
}

func newCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Writes a shell script that completes commands, flags, and names of RayClusters",
		Long: "Writes a script for the shell. While you type, it asks the server for the names of RayClusters. For\n" +
			"kubectl, put an executable file kubectl_complete-heliostat into the PATH that runs:\n" +
			"kubectl-heliostat __complete \"$@\"",
		Example:   "  autoscaler completion bash > autoscaler.bash",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return cli.BadInput(
					fmt.Errorf("shell %q: want one of bash, zsh, fish and powershell", strings.Join(args, " ")),
				)
			}
			return shells[args[0]](cmd.Root(), cmd.OutOrStdout())
		},
	}
}
