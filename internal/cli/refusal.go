package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Arguments checks the arguments of a command: from least to most, each of which names a RayCluster.
func Arguments(least, most int) cobra.PositionalArgs {
	want := "flags only"
	switch {
	case most == 1 && least == 0:
		want = "one RayCluster at most, NAME or NAMESPACE/NAME"
	case most == 1:
		want = "one RayCluster, NAME or NAMESPACE/NAME"
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return BadInput(fmt.Errorf("the RayCluster is missing: want %s; see %s --help", want, cmd.CommandPath()))
		case len(args) > most:
			return BadInput(fmt.Errorf("unexpected argument %q: want %s; see %s --help",
				strings.Join(args[most:], " "), want, cmd.CommandPath()))
		}
		return nil
	}
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
