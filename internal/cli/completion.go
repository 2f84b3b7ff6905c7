package cli

import (
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
