package raydemand

import "errors"

// Sentinel errors of calls to a Ray head, so that a caller can branch without knowing the transport. Every error of
// package gcs wraps at most one of them; the error text contains what the head answered.
var (
	// ErrUnavailable means that the head did not answer in time: it is down, restarting, unreachable or too slow, or
	// TLS with it failed.
	ErrUnavailable = errors.New("the Ray head is unavailable")
	// ErrAuth means that the head refused the token, or that the token could not be read.
	ErrAuth = errors.New("the Ray head refused the token")
	// ErrWrongCluster means that the address now belongs to another Ray cluster, for example after a restart.
	ErrWrongCluster = errors.New("the Ray head belongs to another cluster")
	// ErrUnsupported means that this Ray version does not have the method.
	ErrUnsupported = errors.New("this Ray version does not have the method")
	// ErrPassive means that this head is the passive one of a leader election.
	ErrPassive = errors.New("the Ray head is passive")
	// ErrRayletUnreachable means that the head could not reach the node's raylet. Whether the node drains is unknown.
	ErrRayletUnreachable = errors.New("raylet is unreachable, the outcome is unknown")
	// ErrBadReply means that the head's reply is unusable: too large, not decodable, or empty.
	ErrBadReply = errors.New("the Ray head's reply is unusable")
	// ErrNotIdle means that a drain was not sent because its node was not seen idle: even a refused drain marks the
	// node's actors as preempted.
	ErrNotIdle = errors.New("node was not seen idle")
)

// Failure is a call that did not reach a Ray head, described so that a person can act on it.
type Failure struct {
	// Kind is one of the sentinel errors, for errors.Is.
	Kind error
	// Happened says which address was called and what happened. Advice says what that most likely means and what to do;
	// it applies to a head that has been ready, not to one that is starting.
	Happened, Advice string
	// Detail is the full text of the transport's error, for logs.
	Detail string
}

// Error returns what happened, and the advice.
func (f *Failure) Error() string {
	if f.Advice == "" {
		return f.Happened
	}
	return f.Happened + ": " + f.Advice
}

// Unwrap returns the sentinel error.
func (f *Failure) Unwrap() error { return f.Kind }
