package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

// kindBase is the start of each problem type; the slug of the kind follows.
const kindBase = "https://heliostat.dev/problems/"

// problemKind is one kind of problem. Its slug never changes.
type problemKind struct {
	Slug, Title string
	Status      int
}

// The kinds of problems. docs/reference/rest.md lists them.
var (
	kindInvalidRequest   = problemKind{"invalid-request", "Invalid request", http.StatusBadRequest}
	kindUnauthenticated  = problemKind{"unauthenticated", "Not authenticated", http.StatusUnauthorized}
	kindForbidden        = problemKind{"forbidden", "Forbidden", http.StatusForbidden}
	kindCrossOrigin      = problemKind{"cross-origin", "Foreign web page", http.StatusForbidden}
	kindUnknownCluster   = problemKind{"unknown-cluster", "Unknown RayCluster", http.StatusNotFound}
	kindUnknownPath      = problemKind{"unknown-path", "Unknown path", http.StatusNotFound}
	kindUnknownMethod    = problemKind{"unknown-method", "Method not allowed", http.StatusMethodNotAllowed}
	kindUnknownRequest   = problemKind{"unknown-request", "Unknown request", http.StatusNotFound}
	kindUnknownName      = problemKind{"unknown-name", "Unknown name", http.StatusNotFound}
	kindUnknownDecision  = problemKind{"unknown-decision", "Unknown decision", http.StatusNotFound}
	kindReadOnly         = problemKind{"read-only", "RayCluster must not be written", http.StatusConflict}
	kindRequestElsewhere = problemKind{"request-elsewhere", "Request of another RayCluster", http.StatusConflict}
	kindRequestRefused   = problemKind{"request-refused", "Refused by Kubernetes", http.StatusUnprocessableEntity}
	kindTooManyRequests  = problemKind{"too-many-requests-kept", "Too many requests", http.StatusConflict}
	kindOwnedUnavailable = problemKind{
		"owned-requests-unavailable",
		"Requests with owners are not available",
		http.StatusNotImplemented,
	}
	kindGiveBackRefused = problemKind{"give-back-refused", "It cannot be given back", http.StatusConflict}
	kindConflict        = problemKind{"conflict", "Conflict", http.StatusConflict}
	kindSlowBody        = problemKind{"slow-body", "The body came too slowly", http.StatusRequestTimeout}
	kindThrottled       = problemKind{"throttled", "Too many calls", http.StatusTooManyRequests}
	kindTooLarge        = problemKind{"too-large", "Too large", http.StatusRequestEntityTooLarge}
	kindMediaType       = problemKind{"media-type", "Unsupported media type", http.StatusUnsupportedMediaType}
	kindForeignHost     = problemKind{"foreign-host", "Foreign Host header", http.StatusMisdirectedRequest}
	kindUnavailable     = problemKind{"unavailable", "Unavailable", http.StatusServiceUnavailable}
	kindTimedOut        = problemKind{"timeout", "Timed out", http.StatusGatewayTimeout}
	kindInternal        = problemKind{"internal", "Internal error", http.StatusInternalServerError}
)

// problem is an error with a known kind.
type problem struct {
	Kind   problemKind
	Detail string
	// Fields are the bad fields of an invalid request.
	Fields []apiv1.FieldError
	// After is how long to wait before the next try, if the status has a Retry-After.
	After time.Duration
}

func (e *problem) Error() string { return e.Detail }

// ErrUnavailable means that a dependency of the answer is not reachable now; callers may try again.
var ErrUnavailable = errors.New("not available now")

// errShutdown is the cause of canceled calls when the server shuts down.
var errShutdown = &problem{
	Kind:   kindUnavailable,
	Detail: "the server is shutting down and did not finish this call; it may still have taken effect",
}

// Uncertain reports whether the caller cannot tell from the error whether the call took effect.
func (e *problem) Uncertain() bool {
	switch e.Kind {
	case kindInternal, kindUnavailable, kindTimedOut, kindSlowBody:
		return true
	}
	return false
}

// problemOf maps an error to a problem. All errors that it does not list are internal errors: the answer hides their
// details, and the log shows them.
func problemOf(err error) *problem {
	var known *problem
	var throttled *access.ThrottledError
	var network net.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &throttled):
		return &problem{Kind: kindThrottled, Detail: throttled.Why, After: throttled.After}
	}
	for _, row := range kindsOfErrors {
		if !errors.Is(err, row.err) {
			continue
		}
		if row.detail != "" {
			return &problem{Kind: row.kind, Detail: row.detail}
		}
		return &problem{Kind: row.kind, Detail: err.Error() + row.advice}
	}
	if errors.As(err, &network) {
		return &problem{Kind: kindUnavailable, Detail: "cannot reach Kubernetes; the call may still have taken effect"}
	}
	return &problem{Kind: kindInternal, Detail: "see the log of the server"}
}

// kindsOfErrors maps errors to kinds; the first match counts. The answer shows the error's own text with the advice, or
// the detail instead.
var kindsOfErrors = []struct {
	err            error
	kind           problemKind
	advice, detail string
}{
	{err: access.ErrUnauthenticated, kind: kindUnauthenticated},
	{err: access.ErrForbidden, kind: kindForbidden},
	{
		err: access.ErrUnavailable, kind: kindUnavailable,
		detail: "the caller's identity and rights cannot be reviewed now; see the log of the server",
	},
	{err: nodepool.ErrNoRequests, kind: kindOwnedUnavailable},
	{err: nodepool.ErrNoRequest, kind: kindUnknownRequest},
	{err: nodepool.ErrRequestElsewhere, kind: kindRequestElsewhere},
	{err: nodepool.ErrRequestRefused, kind: kindRequestRefused},
	{err: nodepool.ErrGone, kind: kindUnknownCluster},
	{err: giveback.ErrNotNow, kind: kindGiveBackRefused, advice: "; try again later"},
	{err: giveback.ErrRefused, kind: kindGiveBackRefused},
	{err: nodepool.ErrConflict, kind: kindConflict, advice: "; try again"},
	{err: nodepool.ErrReadOnly, kind: kindReadOnly},
	{err: nodepool.ErrTooLarge, kind: kindTooLarge},
	{err: ErrUnavailable, kind: kindUnavailable},
	{err: nodepool.ErrNotLeading, kind: kindUnavailable},
	{err: nodepool.ErrRequestsPaused, kind: kindUnavailable},
	{err: nodepool.ErrDenied, kind: kindUnavailable},
	{err: nodepool.ErrWebhook, kind: kindUnavailable},
	{
		err: nodepool.ErrUnserved, kind: kindUnavailable,
		detail: nodepool.ErrUnserved.Error() + "; it may still have taken effect",
	},
	{
		err: context.DeadlineExceeded, kind: kindTimedOut,
		detail: "Kubernetes did not answer in time; the call may still have taken effect",
	},
}

// maxFields is how many bad fields one answer lists at most, so that a hostile body does not get a large answer.
const maxFields = 20

// invalidFields returns the problem of a request with bad fields, at least one.
func invalidFields(fields []apiv1.FieldError) error {
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
	return &problem{Kind: kindInvalidRequest, Detail: detail, Fields: fields}
}

// invalidField returns the problem of a request with one bad field.
func invalidField(field, value, expected string) error {
	return invalidFields([]apiv1.FieldError{{Field: field, Value: value, Expected: expected}})
}

// maxShown is how many bytes of a bad value a message repeats.
const maxShown = 60

// shorten cuts text to 60 bytes, between two characters.
func shorten(text string) string { return fieldpath.Excerpt(text, maxShown) }

// answers writes answers. It logs the errors whose details callers must not see.
type answers struct{ log *slog.Logger }

// callerKey is the key of the caller in the values of a call.
const callerKey = "heliostat.dev/caller"

// callerOf returns the caller of c: access.Anybody if the server does not authenticate callers, and the zero Caller for
// operations that are open to all.
func callerOf(c *gin.Context) access.Caller {
	caller, _ := c.Get(callerKey)
	known, _ := caller.(access.Caller)
	return known
}

// JSON writes a body as JSON. It encodes the whole body before it writes the first byte, so that an encoding error
// never looks like a success that was cut off.
func (w *answers) JSON(c *gin.Context, status int, body any) {
	if err := w.write(c, status, "application/json", body); err != nil {
		w.Fail(c, err)
	}
}

func (w *answers) write(c *gin.Context, status int, contentType string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	c.Data(status, contentType, append(text, '\n'))
	return nil
}

// Fail writes err as a problem document and ends the call.
func (w *answers) Fail(c *gin.Context, err error) {
	p := withNames(problemOf(err), c.Param)
	if p.Uncertain() && shuttingDown(c.Request.Context()) {
		p, err = errShutdown, errShutdown
	}
	if p.Kind == kindInternal && !errors.Is(err, context.Canceled) {
		w.log.Error("REST call failed", "method", c.Request.Method, "path", c.Request.URL.Path, "error", err)
	}
	if p.Kind == kindUnavailable && !errors.As(err, new(*problem)) {
		w.log.Warn(
			"REST call is not possible now", "method", c.Request.Method, "path", c.Request.URL.Path, "error", err,
		)
	}
	switch p.Kind {
	case kindUnavailable:
		c.Header("Retry-After", wholeSeconds(cmp.Or(p.After, unavailableFor)))
	case kindThrottled:
		c.Header("Retry-After", wholeSeconds(p.After))
	case kindUnauthenticated:
		c.Header("WWW-Authenticate", `Bearer realm="heliostat"`)
	}
	c.Abort()
	err = w.write(c, p.Kind.Status, "application/problem+json", apiv1.Problem{
		Type:     kindBase + p.Kind.Slug,
		Title:    p.Kind.Title,
		Status:   p.Kind.Status,
		Detail:   p.Detail,
		Instance: c.Request.URL.EscapedPath(),
		Errors:   p.Fields,
	})
	if err != nil { // a problem document is small and always has an encoding
		w.log.Error("writing a problem document", "path", c.Request.URL.Path, "error", err)
		c.Status(http.StatusInternalServerError)
	}
}

// unavailableFor is the Retry-After of a 503: a few cycles.
const unavailableFor = time.Second

// withNames names the RayCluster or request that does not exist, in the same words wherever the error comes from.
func withNames(p *problem, param func(string) string) *problem {
	key := nodepool.ClusterKey{Namespace: param("namespace"), Name: param("name")}
	switch p.Kind {
	case kindUnknownCluster:
		return &problem{
			Kind:   p.Kind,
			Detail: fmt.Sprintf("there is no RayCluster %s among those that Heliostat looks after", key),
		}
	case kindUnknownRequest:
		return &problem{Kind: p.Kind, Detail: fmt.Sprintf("RayCluster %s has no request %s", key, param("id"))}
	}
	return p
}

// wholeSeconds formats a duration for Retry-After: whole seconds, at least one.
func wholeSeconds(pause time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(pause.Seconds()))))
}

// shuttingDown reports whether the shutdown of the server canceled a call.
func shuttingDown(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), errShutdown)
}
