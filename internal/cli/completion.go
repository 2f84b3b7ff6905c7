package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fileFlags are the flags whose values are file names.
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
	"prices",
	"snapshot",
	"tls-cert-file",
	"tls-key-file",
	"token-file",
	"what-if",
}

// fixedFlags are the flags with a fixed set of values.
var fixedFlags = map[string][]string{
	"output":     {"table", "wide", "json", "yaml"},
	"mode":       {"managed", "shadow", "off"},
	"log-level":  {"debug", "info", "warn", "error"},
	"log-format": {"json", "text"},
}

// CompleteRest sets the completion of arguments and flags that have none, for which a shell would offer files: fixed
// values, files for file flags, and nothing for all others.
func CompleteRest(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, set := cmd.GetFlagCompletionFunc(f.Name); set || slices.Contains(fileFlags, f.Name) {
			return
		}
		CompleteFlag(cmd, f.Name, cobra.FixedCompletions(fixedFlags[f.Name], cobra.ShellCompDirectiveNoFileComp))
	})
}

// CompleteFlag sets the completion of a flag.
func CompleteFlag(cmd *cobra.Command, name string, by cobra.CompletionFunc) {
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
