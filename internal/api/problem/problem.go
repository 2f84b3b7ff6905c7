// Package problem holds the errors of the REST API: the kinds of problem documents, and the one function that maps any
// error to a kind. It must not write answers or know a web framework.
package problem

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Base is the start of each problem type; the slug of the kind follows.
const Base = "https://heliostat.dev/problems/"

// Kind is one kind of problem. Its slug never changes.
type Kind struct {
	Slug, Title string
	Status      int
}

// The kinds of problems. docs/reference/rest.md lists them.
var (
	InvalidRequest     = Kind{"invalid-request", "Invalid request", http.StatusBadRequest}
	Unauthenticated    = Kind{"unauthenticated", "Not authenticated", http.StatusUnauthorized}
	Forbidden          = Kind{"forbidden", "Forbidden", http.StatusForbidden}
	CrossOrigin        = Kind{"cross-origin", "Foreign web page", http.StatusForbidden}
	UnknownCluster     = Kind{"unknown-cluster", "Unknown RayCluster", http.StatusNotFound}
	UnknownPath        = Kind{"unknown-path", "Unknown path", http.StatusNotFound}
	UnknownMethod      = Kind{"unknown-method", "Method not allowed", http.StatusMethodNotAllowed}
	UnknownRequest     = Kind{"unknown-request", "Unknown request", http.StatusNotFound}
	UnknownName        = Kind{"unknown-name", "Unknown name", http.StatusNotFound}
	UnknownDecision    = Kind{"unknown-decision", "Unknown decision", http.StatusNotFound}
	ReadOnly           = Kind{"read-only", "RayCluster must not be written", http.StatusConflict}
	RequestElsewhere   = Kind{"request-elsewhere", "Request of another RayCluster", http.StatusConflict}
	RequestRefused     = Kind{"request-refused", "Refused by Kubernetes", http.StatusUnprocessableEntity}
	TooManyRequests    = Kind{"too-many-requests-kept", "Too many requests", http.StatusConflict}
	PreconditionFailed = Kind{"precondition-failed", "Precondition failed", http.StatusPreconditionFailed}
	OwnedUnavailable   = Kind{
		"owned-requests-unavailable",
		"Requests with owners are not available",
		http.StatusNotImplemented,
	}
	Conflict       = Kind{"conflict", "Conflict", http.StatusConflict}
	SlowBody       = Kind{"slow-body", "The body came too slowly", http.StatusRequestTimeout}
	URITooLong     = Kind{"uri-too-long", "Address too long", http.StatusRequestURITooLong}
	HeaderTooLarge = Kind{"header-too-large", "Header too large", http.StatusRequestHeaderFieldsTooLarge}
	Throttled      = Kind{"throttled", "Too many calls", http.StatusTooManyRequests}
	TooLarge       = Kind{"too-large", "Too large", http.StatusRequestEntityTooLarge}
	MediaType      = Kind{"media-type", "Unsupported media type", http.StatusUnsupportedMediaType}
	ForeignHost    = Kind{"foreign-host", "Foreign Host header", http.StatusMisdirectedRequest}
	NotLeader      = Kind{"not-leader", "Another replica decides", http.StatusMisdirectedRequest}
	Unavailable    = Kind{"unavailable", "Unavailable", http.StatusServiceUnavailable}
	TimedOut       = Kind{"timeout", "Timed out", http.StatusGatewayTimeout}
	Internal       = Kind{"internal", "Internal error", http.StatusInternalServerError}
)

// Error is an error with a known kind.
type Error struct {
	Kind   Kind
	Detail string
	// Fields are the bad fields of an invalid request.
	Fields []apiv1.FieldError
	// After is how long to wait before the next try, if the status has a Retry-After.
	After time.Duration
}

func (e *Error) Error() string { return e.Detail }

// ErrUnavailable means that a dependency of the answer is not reachable now; callers may try again.
var ErrUnavailable = errors.New("not available now")

// ErrShutdown is the cause of canceled calls when the server shuts down.
var ErrShutdown = &Error{
	Kind:   Unavailable,
	Detail: "the server is shutting down and did not finish this call; it may still have taken effect",
}

// Uncertain reports whether the caller cannot tell from the error whether the call took effect.
func (e *Error) Uncertain() bool {
	switch e.Kind {
	case Internal, Unavailable, TimedOut, SlowBody:
		return true
	}
	return false
}

// Classify maps an error to a problem. All errors that it does not list are internal errors: the answer hides their
// details, and the log shows them.
func Classify(err error) *Error {
	var known *Error
	var throttled *access.ThrottledError
	var network net.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &throttled):
		return &Error{Kind: Throttled, Detail: throttled.Why, After: throttled.After}
	}
	for _, row := range kinds {
		if !errors.Is(err, row.err) {
			continue
		}
		if row.detail != "" {
			return &Error{Kind: row.kind, Detail: row.detail}
		}
		return &Error{Kind: row.kind, Detail: err.Error() + row.advice}
	}
	if errors.As(err, &network) {
		return &Error{Kind: Unavailable, Detail: "cannot reach Kubernetes; the call may still have taken effect"}
	}
	return &Error{Kind: Internal, Detail: "see the log of the server"}
}

// kinds maps errors to kinds; the first match counts. The answer shows the error's own text with the advice, or the
// detail instead.
var kinds = []struct {
	err            error
	kind           Kind
	advice, detail string
}{
	{err: access.ErrUnauthenticated, kind: Unauthenticated},
	{err: access.ErrForbidden, kind: Forbidden},
	{
		err: access.ErrUnavailable, kind: Unavailable,
		detail: "the caller's identity and rights cannot be reviewed now; see the log of the server",
	},
	{err: nodepool.ErrNoRequests, kind: OwnedUnavailable},
	{err: nodepool.ErrNoRequest, kind: UnknownRequest},
	{err: nodepool.ErrRequestElsewhere, kind: RequestElsewhere},
	{err: nodepool.ErrRequestRefused, kind: RequestRefused},
	{err: nodepool.ErrPrecondition, kind: PreconditionFailed},
	{err: nodepool.ErrGone, kind: UnknownCluster},
	{err: nodepool.ErrConflict, kind: Conflict, advice: "; try again"},
	{err: nodepool.ErrReadOnly, kind: ReadOnly},
	{err: nodepool.ErrTooLarge, kind: TooLarge},
	{err: ErrUnavailable, kind: Unavailable},
	{err: nodepool.ErrNotLeading, kind: Unavailable},
	{err: nodepool.ErrRequestsPaused, kind: Unavailable},
	{err: nodepool.ErrDenied, kind: Unavailable},
	{
		err: context.DeadlineExceeded, kind: TimedOut,
		detail: "Kubernetes did not answer in time; the call may still have taken effect",
	},
}

// MaxFields is how many bad fields one answer lists at most, so that a hostile body does not get a large answer.
const MaxFields = 20

// Invalid returns the problem of a request with bad fields, at least one.
func Invalid(fields []apiv1.FieldError) error {
	first := fields[0]
	detail := "want " + first.Expected
	if first.Value != "" {
		detail += ", is " + first.Value
	}
	if first.Field != "" {
		detail = first.Field + ": " + detail
	}
	if more := len(fields) - 1; more > 0 {
		detail += fmt.Sprintf(" (and %d more)", more)
	}
	return &Error{Kind: InvalidRequest, Detail: detail, Fields: fields}
}

// maxShown is how many bytes of a bad value a message repeats.
const maxShown = 60

// Shorten cuts text to 60 bytes, between two characters.
func Shorten(text string) string { return fieldpath.Excerpt(text, maxShown) }
