package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/gin-gonic/gin"
)

// logCalls writes one debug line per call. Paths hold names of namespaces and clusters, never secrets.
func (s *server) logCalls(c *gin.Context) {
	start := s.now()
	c.Next()
	if s.log.Enabled(c.Request.Context(), slog.LevelDebug) {
		s.log.Debug("REST call", "method", c.Request.Method, "path", c.Request.URL.Path, "status", c.Writer.Status(),
			"seconds", s.now().Sub(start).Seconds())
	}
}

// recoverPanics turns a panic into an internal error. http.ErrAbortHandler keeps its meaning.
func (s *server) recoverPanics(c *gin.Context) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			panic(cause)
		default:
			s.fail(c, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	c.Next()
}

// setHeaders sets what holds for every answer: always fresh, never guessed at, never framed, never run. The page has a
// policy of its own.
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
