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
	"github.com/spf13/pflag"

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
				return badInput{fmt.Errorf("shell %q: want one of bash, zsh, fish and powershell", strings.Join(args, " "))}
			}
			return shells[args[0]](cmd.Root(), cmd.OutOrStdout())
		},
	}
}

// fileFlags are the flags whose values are names of files.
var fileFlags = []string{"certificate-authority", "client-ca-file", "client-certificate", "client-key", "config", "filename", "gcs-kubernetes-token-file",
	"kubeconfig", "node-file", "pools", "snapshot", "tls-ca-file", "tls-cert-file", "tls-key-file", "token-file", "what-if"}

// fixedFlags are those with few values.
var fixedFlags = map[string][]string{
	"output": {"table", "wide", "json", "yaml"}, "mode": {"managed", "shadow", "off"}, "log-level": {"debug", "info", "warn", "error"}, "log-format": {"json", "text"},
}

// completeRest completes what a command has said nothing of, for which a shell would offer files: fixed values by themselves, files by files, and all
// else by nothing.
func completeRest(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, said := cmd.GetFlagCompletionFunc(f.Name); said || slices.Contains(fileFlags, f.Name) {
			return
		}
		completeFlag(cmd, f.Name, cobra.FixedCompletions(fixedFlags[f.Name], cobra.ShellCompDirectiveNoFileComp))
	})
}

func completeFlag(cmd *cobra.Command, name string, by cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, by); err != nil {
		panic(err) // there is no such flag, or it is registered a second time
	}
}

// filesBehindF completes arguments by files where -f is given, which more of them may follow, and by nothing elsewhere.
func filesBehindF(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if cmd.Flags().Changed("filename") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
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
	completeFlag(cmd, "namespace", f.namesOf(func(ctx context.Context, api *client.Client, _ []string) (names []string, err error) {
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
	completeFlag(cmd, "context", func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		config, err := f.client().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
	})
}

// completeOf completes a flag by names that a RayCluster has, which is the first argument. Without one there are none.
func (f *serverFlags) completeOf(cmd *cobra.Command, flag string, ask func(ctx context.Context, api *client.Client, key nodepool.ClusterKey) ([]string, error)) {
	completeFlag(cmd, flag, f.namesOf(func(ctx context.Context, api *client.Client, args []string) ([]string, error) {
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
