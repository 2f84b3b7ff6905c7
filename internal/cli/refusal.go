package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// UnknownCommand returns an error for the first argument of a command that only has subcommands, with the closest
// names.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	near := strings.Join(cmd.SuggestionsFor(args[0]), " or ")
	if near != "" {
		near = ": want " + near
	}
	return BadInput(fmt.Errorf("unknown command %q%s; see %s --help", args[0], near, cmd.CommandPath()))
}

// HelpTopic returns an error for help on a command that does not exist; cobra would show the root's help instead.
func HelpTopic(help *cobra.Command, args []string) error {
	topic, rest, err := help.Root().Find(args)
	if err != nil {
		return BadInput(err)
	}
	return UnknownCommand(topic, rest)
}

// FlagError adds the right flag or value to an error about a flag.
func FlagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 { // the flag belongs to an unknown command
		return UnknownCommand(cmd, args)
	}
	help := "; see " + cmd.CommandPath() + " --help"
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		flag := invalid.GetFlag()
		return BadInput(fmt.Errorf("--%s %q: want %s%s", flag.Name, invalid.GetValue(), WantedValue(flag), help))
	case errors.As(err, &unknown) && strings.Contains(cmd.Use, "[RAYCLUSTER]") &&
		slices.Contains([]string{"A", "all-namespaces"}, unknown.GetSpecifiedName()):
		return BadInput(fmt.Errorf("%w: without -n, the command covers all namespaces%s", err, help))
	}
	return BadInput(fmt.Errorf("%w%s", err, help))
}

// WantedValue describes the values that a flag accepts.
func WantedValue(f *pflag.Flag) string {
	if checked, ok := f.Value.(interface{ wants() string }); ok {
		return checked.wants()
	}
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 300ms, 90s or 1h30m"
	case "float32", "float64":
		return "a number"
	case "int", "int64":
		return "a whole number"
	case "int32":
		return "a whole number from -2147483648 to 2147483647"
	case "stringSlice", "stringArray":
		return "a list of strings"
	}
	return "a string"
}

// NoArguments returns an error if there are arguments other than flags.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return BadInput(
			fmt.Errorf("unexpected argument %q: want flags only; see %s --help", args[0], cmd.CommandPath()),
		)
	}
	return nil
}

// AtMostOneCluster returns an error if there is more than one argument. The first is a RayCluster.
func AtMostOneCluster(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return BadInput(fmt.Errorf("unexpected argument %q: want one RayCluster at most, NAME or NAMESPACE/NAME; see "+
			"%s --help", args[1], cmd.CommandPath()))
	}
	return nil
}

// ExactlyOneCluster returns an error unless there is exactly one argument, a RayCluster.
func ExactlyOneCluster(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return BadInput(
			fmt.Errorf("the RayCluster is missing: want one, NAME or NAMESPACE/NAME; see %s --help", cmd.CommandPath()),
		)
	}
	return BadInput(fmt.Errorf("unexpected arguments %s: want one RayCluster, NAME or NAMESPACE/NAME; see %s --help",
		strings.Join(args[1:], " "), cmd.CommandPath()))
}

// Exit codes of all commands.
const (
	ExitOK       = 0
	ExitFailed   = 1
	ExitBadInput = 2
)

// InputError is an error caused by the user's arguments or files.
type InputError struct{ err error }

// BadInput marks an error as caused by the user's arguments or files, so that the program exits with ExitBadInput.
func BadInput(err error) error { return InputError{err} }

func (b InputError) Error() string { return b.err.Error() }

func (b InputError) Unwrap() error { return b.err }
