package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/propagation"
)

// logCalls logs each call at debug level. Paths contain names of namespaces and clusters, never secrets.
func (s *server) logCalls(c *gin.Context) {
	start := s.now()
	c.Next()
	if s.log.Enabled(c.Request.Context(), slog.LevelDebug) {
		s.log.Debug("REST call", "method", c.Request.Method, "path", c.Request.URL.Path, "status", c.Writer.Status(),
			"seconds", s.now().Sub(start).Seconds())
	}
}

// logWrites logs each call that can change something: the caller, the operation and its status. Bodies and tokens are
// never in the log.
func (s *server) logWrites(c *gin.Context) {
	c.Next()
	if method := c.Request.Method; method == http.MethodGet || method == http.MethodHead || c.FullPath() == "" {
		return
	}
	s.log.LogAttrs(c.Request.Context(), slog.LevelInfo, "REST write",
		slog.String("caller", callerOf(c).Name), slog.String("operation", s.guard.Operation(c).ID),
		slog.String("namespace", c.Param("namespace")), slog.String("name", c.Param("name")),
		slog.Int("status", c.Writer.Status()))
}

// recoverPanics turns a panic into an internal error. http.ErrAbortHandler keeps its meaning.
func (s *server) recoverPanics(c *gin.Context) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			panic(cause)
		default:
			s.answers.Fail(c, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	c.Next()
}

// traceContext adds the W3C trace context of a call to its context.
func traceContext(c *gin.Context) {
	r := c.Request
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	c.Request = r.WithContext(ctx)
}

// setHeaders sets the security headers of all answers. The page replaces the content security policy with its own.
func setHeaders(c *gin.Context) {
	header := c.Writer.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	if c.Request.TLS != nil {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}
