package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/pkg/nodepool"
)

const problemBase = "https://heliostat.dev/problems/"

// Error makes a Problem an error, so that the client can return it as it came.
func (p *Problem) Error() string {
	return fmt.Sprintf("%s (%d): %s", p.Title, p.Status, p.Detail)
}

// kind is one sort of problem: a slug that never changes and what goes with it.
type kind struct {
	slug, title string
	status      int
}

// The kinds of problems. docs/reference/rest.md lists them.
var (
	invalidRequest = kind{"invalid-request", "Invalid request", http.StatusBadRequest}
	unknownCluster = kind{"unknown-cluster", "Unknown RayCluster", http.StatusNotFound}
	unknownPath    = kind{"unknown-path", "Unknown path", http.StatusNotFound}
	unknownMethod  = kind{"unknown-method", "Method not allowed", http.StatusMethodNotAllowed}
	readOnly       = kind{"read-only", "RayCluster must not be written", http.StatusConflict}
	conflict       = kind{"conflict", "Conflict", http.StatusConflict}
	tooLarge       = kind{"too-large", "Too large", http.StatusRequestEntityTooLarge}
	mediaType      = kind{"media-type", "Unsupported media type", http.StatusUnsupportedMediaType}
	foreignHost    = kind{"foreign-host", "Foreign Host header", http.StatusMisdirectedRequest}
	unavailable    = kind{"unavailable", "Unavailable", http.StatusServiceUnavailable}
	timedOut       = kind{"timeout", "Timed out", http.StatusGatewayTimeout}
	internalError  = kind{"internal", "Internal error", http.StatusInternalServerError}
)

// problem is an error whose kind is already known.
type problem struct {
	kind   kind
	detail string
	errors []FieldError
}

func (p *problem) Error() string { return p.detail }

// retryAfterSeconds is what a 503 tells callers: a few cycles.
const retryAfterSeconds = "1"

// classify maps every error to a problem. What is not listed is an internal error, whose details stay in the log.
func classify(err error) *problem {
	var known *problem
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, nodepool.ErrGone):
		return &problem{kind: unknownCluster, detail: err.Error()}
	case errors.Is(err, nodepool.ErrConflict):
		return &problem{kind: conflict, detail: err.Error() + "; try again"}
	case errors.Is(err, nodepool.ErrReadOnly):
		return &problem{kind: readOnly, detail: err.Error()}
	case errors.Is(err, nodepool.ErrTooLarge):
		return &problem{kind: tooLarge, detail: err.Error()}
	case errors.Is(err, ErrUnavailable), errors.Is(err, nodepool.ErrNotLeading):
		return &problem{kind: unavailable, detail: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &problem{kind: timedOut, detail: "Kubernetes did not answer in time; what was asked may still have happened"}
	default:
		return &problem{kind: internalError, detail: "the log has the details"}
	}
}

// fail writes err as a problem document and ends the call.
func (s *server) fail(c *gin.Context, err error) {
	p := classify(err)
	if p.kind == internalError && !errors.Is(err, context.Canceled) {
		s.log.Error("REST call failed", "method", c.Request.Method, "path", c.Request.URL.Path, "error", err)
	}
	if p.kind == unavailable {
		c.Header("Retry-After", retryAfterSeconds)
	}
	writeProblem(c, p)
}

func writeProblem(c *gin.Context, p *problem) {
	c.Abort()
	write(c, p.kind.status, "application/problem+json", Problem{
		Type:     problemBase + p.kind.slug,
		Title:    p.kind.title,
		Status:   p.kind.status,
		Detail:   p.detail,
		Instance: c.Request.URL.EscapedPath(),
		Errors:   p.errors,
	})
}

// write encodes the whole body before the first byte goes out: a value that cannot be encoded must not look like a
// success that was cut off.
func write(c *gin.Context, status int, contentType string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		c.Abort()
		c.Status(http.StatusInternalServerError)
		_ = c.Error(fmt.Errorf("encoding the answer: %w", err))
		return
	}
	c.Data(status, contentType, append(text, '\n'))
}
