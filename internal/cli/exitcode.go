package cli

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
