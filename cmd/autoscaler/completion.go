package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/httpapi/client"
	"heliostat.dev/heliostat/pkg/nodepool"
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
		Short: "Writes what a shell needs to complete commands, flags, and names of RayClusters and of what they have",
		Long: "Writes a script for the shell. Names of RayClusters, and of their groups, pods and requests, are asked of the server while you type.\n" +
			"For kubectl, put an executable file kubectl_complete-heliostat into the PATH that runs: kubectl-heliostat __complete \"$@\"",
		Example:   "  autoscaler completion bash > autoscaler.bash",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return cli.BadInput(fmt.Errorf("shell %q: want one of bash, zsh, fish and powershell", strings.Join(args, " ")))
			}
			return shells[args[0]](cmd.Root(), cmd.OutOrStdout())
		},
	}
}

// namesOf completes by names that a server has, within the time that a person waits for them.
func (f *serverFlags) namesOf(ask func(ctx context.Context, api *client.Client, args []string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeTimeout)
		defer cancel()
		api, err := f.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names, err := ask(ctx, api, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, typed) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeCluster lets a command complete its RayCluster: NAME in the namespace of the flags, NAMESPACE/NAME without one.
func (f *serverFlags) completeCluster(cmd *cobra.Command) {
	cmd.ValidArgsFunction = f.namesOf(func(ctx context.Context, api *client.Client, args []string) (names []string, err error) {
		if len(args) > 0 {
			return nil, nil
		}
		clusters, err := api.Clusters(ctx, f.namespace)
		for _, c := range clusters {
			name := c.Namespace + "/" + c.Name
			if f.namespace != "" {
				name = c.Name
			}
			names = append(names, name)
		}
		return names, err
	})
}

// completeOwn completes --namespace by the namespaces of RayClusters, and the flags of the kubeconfig.
func (f *serverFlags) completeOwn(cmd *cobra.Command) {
	cli.CompleteFlag(cmd, "namespace", f.namesOf(func(ctx context.Context, api *client.Client, _ []string) (names []string, err error) {
		clusters, err := api.Clusters(ctx, "")
		for _, c := range clusters {
			names = append(names, c.Namespace)
		}
		slices.Sort(names)
		return slices.Compact(names), err
	}))
	f.kube.completeOwn(cmd)
}

// completeOwn completes --context by those of the kubeconfig.
func (f *kubeFlags) completeOwn(cmd *cobra.Command) {
	cli.CompleteFlag(cmd, "context", func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		config, err := f.client().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
	})
}

// completeOf completes a flag by names that a RayCluster has, which is the first argument. Without one there are none.
func (f *serverFlags) completeOf(cmd *cobra.Command, flag string, ask func(ctx context.Context, api *client.Client, key nodepool.ClusterKey) ([]string, error)) {
	cli.CompleteFlag(cmd, flag, f.namesOf(func(ctx context.Context, api *client.Client, args []string) ([]string, error) {
		if len(args) == 0 {
			return nil, nil
		}
		key, err := f.cluster(args[0])
		if err != nil {
			return nil, err
		}
		return ask(ctx, api, key)
	}))
}
