package nodepool

import "errors"

// ErrTooLarge says that a value does not fit into an annotation; the error around it names the limit.
var ErrTooLarge = errors.New("too large for an annotation")
