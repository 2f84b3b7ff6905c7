package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fileFlags are the flags whose values are names of files.
var fileFlags = []string{
	"certificate-authority",
	"client-ca-file",
	"client-certificate",
	"client-key",
	"config",
	"filename",
	"gcs-kubernetes-token-file",
	"kubeconfig",
	"node-file",
	"pools",
	"snapshot",
	"tls-ca-file",
	"tls-cert-file",
	"tls-key-file",
	"token-file",
	"what-if",
}

// fixedFlags are those with few values.
var fixedFlags = map[string][]string{
	"output": {
		"table",
		"wide",
		"json",
		"yaml",
	},
	"mode":       {"managed", "shadow", "off"},
	"log-level":  {"debug", "info", "warn", "error"},
	"log-format": {"json", "text"},
}

// CompleteRest completes what a command has said nothing of, for which a shell would offer files: fixed values by
// themselves, files by files, and all else by nothing.
func CompleteRest(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, said := cmd.GetFlagCompletionFunc(f.Name); said || slices.Contains(fileFlags, f.Name) {
			return
		}
		CompleteFlag(cmd, f.Name, cobra.FixedCompletions(fixedFlags[f.Name], cobra.ShellCompDirectiveNoFileComp))
	})
}

func CompleteFlag(cmd *cobra.Command, name string, by cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, by); err != nil {
		panic(err) // there is no such flag, or it is registered a second time
	}
}

// CompleteFiles completes arguments by files where -f is given, which more of them may follow, and by nothing
// elsewhere.
func CompleteFiles(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if cmd.Flags().Changed("filename") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
