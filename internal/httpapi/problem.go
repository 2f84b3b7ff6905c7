package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

const problemBase = "https://heliostat.dev/problems/"

// kind is one sort of problem: a slug that never changes and what goes with it.
type kind struct {
	slug, title string
	status      int
}

// The kinds of problems. docs/reference/rest.md lists them.
var (
	invalidRequest  = kind{"invalid-request", "Invalid request", http.StatusBadRequest}
	unauthenticated = kind{"unauthenticated", "Not authenticated", http.StatusUnauthorized}
	forbidden       = kind{"forbidden", "Forbidden", http.StatusForbidden}
	crossOrigin     = kind{"cross-origin", "Foreign web page", http.StatusForbidden}
	unknownCluster  = kind{"unknown-cluster", "Unknown RayCluster", http.StatusNotFound}
	unknownPath     = kind{"unknown-path", "Unknown path", http.StatusNotFound}
	unknownMethod   = kind{"unknown-method", "Method not allowed", http.StatusMethodNotAllowed}
	readOnly        = kind{"read-only", "RayCluster must not be written", http.StatusConflict}
	unknownRequest  = kind{"unknown-request", "Unknown request", http.StatusNotFound}
	requestTaken    = kind{"request-elsewhere", "Request of another RayCluster", http.StatusConflict}
	requestRefused  = kind{"request-refused", "Refused by Kubernetes", http.StatusUnprocessableEntity}
	tooManyKept     = kind{"too-many-requests-kept", "Too many requests", http.StatusConflict}
	hasChanged      = kind{"precondition-failed", "Precondition failed", http.StatusPreconditionFailed}
	withoutOwners   = kind{"owned-requests-unavailable", "Requests with owners are not available", http.StatusNotImplemented}
	conflict        = kind{"conflict", "Conflict", http.StatusConflict}
	slowBody        = kind{"slow-body", "The body came too slowly", http.StatusRequestTimeout}
	uriTooLong      = kind{"uri-too-long", "Address too long", http.StatusRequestURITooLong}
	headerTooLarge  = kind{"header-too-large", "Header too large", http.StatusRequestHeaderFieldsTooLarge}
	throttled       = kind{"throttled", "Too many calls", http.StatusTooManyRequests}
	tooLarge        = kind{"too-large", "Too large", http.StatusRequestEntityTooLarge}
	mediaType       = kind{"media-type", "Unsupported media type", http.StatusUnsupportedMediaType}
	foreignHost     = kind{"foreign-host", "Foreign Host header", http.StatusMisdirectedRequest}
	notLeader       = kind{"not-leader", "Another replica decides", http.StatusMisdirectedRequest}
	unavailable     = kind{"unavailable", "Unavailable", http.StatusServiceUnavailable}
	timedOut        = kind{"timeout", "Timed out", http.StatusGatewayTimeout}
	internalError   = kind{"internal", "Internal error", http.StatusInternalServerError}
)

// problem is an error whose kind is already known.
type problem struct {
	kind   kind
	detail string
	errors []apiv1.FieldError
	// after is when to try again; only where the status calls for it.
	after time.Duration
}

func (p *problem) Error() string { return p.detail }

// unavailableFor is what a 503 tells callers to wait: a few cycles.
const unavailableFor = time.Second

// classify maps every error to a problem. What is not listed is an internal error, whose details stay in the log.
func classify(err error) *problem {
	var known *problem
	var slower *access.ThrottledError
	var network net.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &slower):
		return &problem{kind: throttled, detail: slower.Why, after: slower.After}
	case errors.Is(err, access.ErrUnauthenticated):
		return &problem{kind: unauthenticated, detail: err.Error()}
	case errors.Is(err, access.ErrForbidden):
		return &problem{kind: forbidden, detail: err.Error()}
	case errors.Is(err, access.ErrUnavailable):
		return &problem{kind: unavailable, detail: "who calls and what they may do cannot be reviewed now; the log has the details"}
	case errors.Is(err, nodepool.ErrNoRequests):
		return &problem{kind: withoutOwners, detail: err.Error()}
	case errors.Is(err, nodepool.ErrNoRequest):
		return &problem{kind: unknownRequest, detail: err.Error()}
	case errors.Is(err, nodepool.ErrRequestElsewhere):
		return &problem{kind: requestTaken, detail: err.Error()}
	case errors.Is(err, nodepool.ErrRequestRefused):
		return &problem{kind: requestRefused, detail: err.Error()}
	case errors.Is(err, nodepool.ErrPrecondition):
		return &problem{kind: hasChanged, detail: err.Error()}
	case errors.Is(err, nodepool.ErrGone):
		return &problem{kind: unknownCluster, detail: err.Error()}
	case errors.Is(err, nodepool.ErrConflict):
		return &problem{kind: conflict, detail: err.Error() + "; try again"}
	case errors.Is(err, nodepool.ErrReadOnly):
		return &problem{kind: readOnly, detail: err.Error()}
	case errors.Is(err, nodepool.ErrTooLarge):
		return &problem{kind: tooLarge, detail: err.Error()}
	case errors.Is(err, ErrUnavailable), errors.Is(err, nodepool.ErrNotLeading), errors.Is(err, nodepool.ErrRequestsPaused), errors.Is(err, nodepool.ErrDenied):
		return &problem{kind: unavailable, detail: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &problem{kind: timedOut, detail: "Kubernetes did not answer in time; what was asked may still have happened"}
	case errors.As(err, &network):
		return &problem{kind: unavailable, detail: "Kubernetes cannot be reached now; what was asked may still have happened"}
	default:
		return &problem{kind: internalError, detail: "the log has the details"}
	}
}

// fail writes err as a problem document and ends the call.
func (s *server) fail(c *gin.Context, err error) {
	p := named(classify(err), c.Param)
	if p.leftOpen() && ending(c) {
		p, err = errEnding, errEnding
	}
	if p.kind == internalError && !errors.Is(err, context.Canceled) {
		s.log.Error("REST call failed", "method", c.Request.Method, "path", c.Request.URL.Path, "error", err)
	}
	if p.kind == unavailable && !errors.As(err, new(*problem)) {
		s.log.Warn("REST call is not possible now", "method", c.Request.Method, "path", c.Request.URL.Path, "error", err)
	}
	switch p.kind {
	case unavailable:
		c.Header("Retry-After", seconds(cmp.Or(p.after, unavailableFor)))
	case throttled:
		c.Header("Retry-After", seconds(p.after))
	case unauthenticated:
		c.Header("WWW-Authenticate", `Bearer realm="heliostat"`)
	}
	writeProblem(c, p)
}

// named says which RayCluster, or request of one, is not there, in the same words wherever that was found out.
func named(p *problem, param func(string) string) *problem {
	key := nodepool.ClusterKey{Namespace: param("namespace"), Name: param("name")}
	switch p.kind {
	case unknownCluster:
		return &problem{kind: p.kind, detail: fmt.Sprintf("there is no RayCluster %s among those that Heliostat looks after", key)}
	case unknownRequest:
		return &problem{kind: p.kind, detail: fmt.Sprintf("RayCluster %s has no request %s", key, param("id"))}
	}
	return p
}

// seconds writes a pause as Retry-After has it: whole seconds, at least one.
func seconds(pause time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(pause.Seconds()))))
}

func writeProblem(c *gin.Context, p *problem) {
	c.Abort()
	write(c, p.kind.status, "application/problem+json", apiv1.Problem{
		Type:     problemBase + p.kind.slug,
		Title:    p.kind.title,
		Status:   p.kind.status,
		Detail:   p.detail,
		Instance: c.Request.URL.EscapedPath(),
		Errors:   p.errors,
	})
}
