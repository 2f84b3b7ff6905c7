package nodepool

import "errors"

// ErrGone says that there is no such RayCluster, or not any more.
var ErrGone = errors.New("no such RayCluster")

// ErrTooLarge says that a value does not fit into an annotation; the error around it names the limit.
var ErrTooLarge = errors.New("too large for an annotation")

// ErrDenied says that Kubernetes does not let Heliostat do what was asked: it has no right to, or admission refuses it.
var ErrDenied = errors.New("Kubernetes does not let Heliostat do it")
