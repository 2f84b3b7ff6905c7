package nodepool

import "errors"

// ErrGone means that the RayCluster does not exist, or no longer exists.
var ErrGone = errors.New("no such RayCluster")

// ErrTooLarge means that a value does not fit into an annotation; the error that wraps it names the limit.
var ErrTooLarge = errors.New("too large for an annotation")

// ErrWebhook means that the API server could not call an admission webhook, so it refuses every write of the kind until
// the webhook answers again.
var ErrWebhook = errors.New("an admission webhook does not answer")

// ErrUnserved means that the API server answers that it cannot serve a call now, for example because its storage does
// not. A write may have taken effect.
var ErrUnserved = errors.New("the API server cannot serve the call now")

// ErrDenied means that Kubernetes does not allow Heliostat to do what was requested: it lacks the permission, or
// admission refuses it.
var ErrDenied = errors.New("Kubernetes does not allow it")

// ErrConflict means that the RayCluster has changed since it was read: read it again.
var ErrConflict = errors.New("RayCluster changed since it was read")

// ErrOutdated means that the reading on which a change rests was too old before the change could be sent. Nothing was
// written.
var ErrOutdated = errors.New("what was read is too old for this change")

// ErrReadOnly means that the RayCluster must not be written to now: it is frozen, suspended, being deleted or managed
// by another controller, or this process is read-only. The error that wraps it says which.
var ErrReadOnly = errors.New("RayCluster must not be written to")

// ErrNotLeading means that another process is, or may be, the leader.
var ErrNotLeading = errors.New("this process is not the leader")
