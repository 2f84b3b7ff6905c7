package httpapi

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"

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

// guardHost refuses names that are not loopback while the server listens on loopback: a web page whose name was pointed
// at 127.0.0.1 (DNS rebinding) would otherwise speak to it from the user's own browser.
func (s *server) guardHost(c *gin.Context) {
	if s.InsecureListenAnywhere {
		return
	}
	host := c.Request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !isLoopback(strings.Trim(host, "[]")) {
		s.fail(c, &problem{kind: foreignHost, detail: fmt.Sprintf("Host is %q; call this server by a loopback address or localhost", shorten(host))})
	}
}

// setHeaders sets what holds for every answer: always fresh, never guessed at, never framed.
func setHeaders(c *gin.Context) {
	header := c.Writer.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
}
