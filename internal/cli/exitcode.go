package cli

// Exit codes of all commands.
const (
	ExitOK       = 0
	ExitFailed   = 1
	ExitBadInput = 2
)

// InputError is an error that the caller's arguments or files cause.
type InputError struct{ err error }

// BadInput marks an error as caused by the caller's arguments or files, so that the program exits with exitBadInput.
func BadInput(err error) error { return InputError{err} }

func (b InputError) Error() string { return b.err.Error() }

func (b InputError) Unwrap() error { return b.err }
