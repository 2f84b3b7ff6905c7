package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// answers writes answers.
type answers struct {
	log     *slog.Logger
	pending *pending
}

// newAnswers returns answers that logs the errors whose details callers must not see.
func newAnswers(log *slog.Logger) *answers { return &answers{log: log, pending: newPending()} }

// callerKey is the key of the caller in the values of a call.
const callerKey = "heliostat.dev/caller"

// setCaller stores the caller of c.
func setCaller(c *gin.Context, caller access.Caller) { c.Set(callerKey, caller) }

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
	text, err := w.pending.encode(body)
	if err != nil {
		return err
	}
	release, err := w.pending.hold(callerOf(c).Name, len(text))
	if err != nil {
		return err
	}
	defer release()
	c.Data(status, contentType, text)
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
