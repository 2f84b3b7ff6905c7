package raydemand

import "errors"

// Sentinels of talking to a Ray head, so that a caller can branch without knowing the transport. Every error of
// package gcs wraps at most one of them; the chain's text keeps what the head said.
var (
	// ErrUnavailable says that the head did not answer, or not in time: down, restarting, unreachable, too slow.
	ErrUnavailable = errors.New("the Ray head is unavailable")
	// ErrAuth says that the head refused our token, or that we could not read one.
	ErrAuth = errors.New("the Ray head refused the token")
	// ErrTLS says that we and the head do not trust each other: a certificate is missing, foreign, expired or for
	// another name, or the head speaks no TLS. Like ErrAuth it lasts until somebody mends it, while ErrUnavailable
	// passes.
	ErrTLS = errors.New("TLS with the Ray head failed")
	// ErrWrongCluster says that the address now belongs to another Ray cluster, for example after a restart.
	ErrWrongCluster = errors.New("the Ray head belongs to another cluster")
	// ErrUnsupported says that this Ray version does not know the method.
	ErrUnsupported = errors.New("this Ray version does not know the method")
	// ErrPassive says that this head is the passive one of a leader election.
	ErrPassive = errors.New("the Ray head is passive")
	// ErrRayletUnreachable says that the head could not reach the node's raylet: whether it drains is unknown.
	ErrRayletUnreachable = errors.New("raylet is unreachable, the outcome is unknown")
	// ErrBadReply says that the head answered something that cannot be used: too large, not decodable, empty.
	ErrBadReply = errors.New("the Ray head's reply is unusable")
	// ErrNotIdle says that a drain was not sent because its node was not seen idle: even a refused drain marks the
	// node's actors as preempted.
	ErrNotIdle = errors.New("node was not seen idle")
)

// Failure is a call that did not reach a Ray head, in one sentence that a person can act on.
type Failure struct {
	// Kind is one of the sentinels, which errors.Is finds.
	Kind error
	// Happened says who was called and what happened. Advice is what that most likely means and what to do; it holds of a head that
	// has been ready, and not of one that is just starting.
	Happened, Advice string
	// Detail is all that the transport said, for logs.
	Detail string
}

// Error is what happened, and the advice.
func (f *Failure) Error() string {
	if f.Advice == "" {
		return f.Happened
	}
	return f.Happened + ": " + f.Advice
}

// Unwrap returns the sentinel.
func (f *Failure) Unwrap() error { return f.Kind }
