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
	// ErrUnsupported means that this Ray version does not have the method.
	ErrUnsupported = errors.New("this Ray version does not have the method")
	// ErrBadReply means that the head's reply is unusable: too large, not decodable, or empty.
	ErrBadReply = errors.New("the Ray head's reply is unusable")
	// ErrNotIdle means that a drain was not sent because its node was not seen idle: even a refused drain marks the
	// node's actors as preempted.
	ErrNotIdle = errors.New("node was not seen idle")
)

// Failure is a call that did not reach a Ray head, described so that a person can act on it.
type Failure struct {
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

// Unwrap returns ErrUnavailable.
func (f *Failure) Unwrap() error { return ErrUnavailable }
