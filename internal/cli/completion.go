package cli

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// CompleteRest sets the completion of arguments and flags that have none, for which a shell would offer files: fixed
// values, files for file flags, and nothing for all others.
func CompleteRest(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, set := cmd.GetFlagCompletionFunc(f.Name); set || isFile.MatchString(f.Usage) {
			return
		}
		var words []string
		if of, ok := f.Value.(*validated); ok {
			words = of.words
		}
		completeFlag(cmd, f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	})
}

// isFile matches the usage of flags whose values are names of files.
var isFile = regexp.MustCompile(`\bfile\b`)

// completeFlag sets the completion of a flag.
func completeFlag(cmd *cobra.Command, name string, by cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, by); err != nil {
		panic(err) // the flag does not exist, or has a completion already
	}
}

// CompleteFiles completes arguments with files if -f is given, because further files may follow it, and otherwise with
// nothing.
func CompleteFiles(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if cmd.Flags().Changed("filename") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeTimeout limits how long a shell waits for names while a person is typing.
const completeTimeout = 2 * time.Second

// completeNames completes with names from the server.
func (f *ServerFlags) completeNames(
	ask func(ctx context.Context, api *apiv1.Client, args []string) ([]string, error),
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeTimeout)
		defer cancel()
		api, err := f.Client()
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

// CompleteCluster completes the RayCluster of a command: NAME if the flags set a namespace, otherwise NAMESPACE/NAME.
func (f *ServerFlags) CompleteCluster(cmd *cobra.Command) {
	cmd.ValidArgsFunction = f.completeNames(
		func(ctx context.Context, api *apiv1.Client, args []string) (names []string, err error) {
			if len(args) > 0 {
				return nil, nil
			}
			clusters, err := api.Clusters(ctx, f.Namespace)
			for _, c := range clusters {
				name := c.Namespace + "/" + c.Name
				if f.Namespace != "" {
					name = c.Name
				}
				names = append(names, name)
			}
			return names, err
		},
	)
}

// completeOwn completes --namespace with the namespaces of RayClusters, and the flags of the kubeconfig.
func (f *ServerFlags) completeOwn(cmd *cobra.Command) {
	completeFlag(
		cmd,
		"namespace",
		f.completeNames(func(ctx context.Context, api *apiv1.Client, _ []string) (names []string, err error) {
			clusters, err := api.Clusters(ctx, "")
			for _, c := range clusters {
				names = append(names, c.Namespace)
			}
			slices.Sort(names)
			return slices.Compact(names), err
		}),
	)
	f.kube.CompleteOwn(cmd)
}

// CompleteOwn completes --context with the contexts of the kubeconfig.
func (f *KubeFlags) CompleteOwn(cmd *cobra.Command) {
	completeFlag(cmd, "context", func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		config, err := f.client().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
	})
}
