package httpapi

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/propagation"

	"heliostat.dev/heliostat/internal/access"
)

// callerKey is where guard leaves the caller.
const callerKey = "heliostat.dev/caller"

// callerOf is who makes the call c: access.Anybody where nobody is asked who they are, nobody for what is open to all.
func callerOf(c *gin.Context) access.Caller {
	caller, _ := c.Get(callerKey)
	known, _ := caller.(access.Caller)
	return known
}

// guard lets a call through to its operation when the caller is known, keeps its pace, and has the right that the contract
// names. It looks at nothing but the call: a refusal says nothing of what there is.
func (s *server) guard(c *gin.Context) {
	if c.FullPath() == "" {
		return // there is no such operation, which is told to everybody: the contract is public
	}
	rule, known := s.rules[c.Request.Method+" "+c.FullPath()]
	if !known {
		s.fail(c, fmt.Errorf("%s %s has no right in the contract", c.Request.Method, c.FullPath()))
		return
	}
	if rule.open {
		return
	}
	caller := access.Anybody
	if s.Access != nil {
		var err error
		if caller, err = s.Access.Authenticate(c.Request); err != nil {
			s.fail(c, err)
			return
		}
	}
	c.Set(callerKey, caller)
	release, err := s.pace(caller.Name)
	if err != nil {
		s.fail(c, err)
		return
	}
	defer release()
	if s.checkNames(c); c.IsAborted() {
		return
	}
	if err := s.authorize(c, caller, rule); err != nil {
		s.fail(c, err)
		return
	}
	c.Next()
}

// authorize checks the right that a rule names, about the object of the call. What is shown per namespace is left to the handler.
func (s *server) authorize(c *gin.Context, caller access.Caller, rule rule) error {
	if s.Access == nil || rule.perNamespace {
		return nil
	}
	right := rule.right
	right.Namespace, right.Name = c.Param("namespace"), c.Param("name")
	return s.Access.Authorize(c.Request.Context(), caller, right)
}

// stillAllowed asks again who the caller of c is and what it may do. Operations that answer for long ask now and then: a
// token may have been revoked since.
func (s *server) stillAllowed(c *gin.Context) error {
	if s.Access == nil {
		return nil
	}
	caller, err := s.Access.Authenticate(c.Request)
	if err != nil {
		return err
	}
	return s.authorize(c, caller, s.rules[c.Request.Method+" "+c.FullPath()])
}

// guardHost refuses names that are not loopback while nobody is asked who they are: a web page whose name was pointed at
// 127.0.0.1 (DNS rebinding) would otherwise speak to the server from the user's own browser.
func (s *server) guardHost(c *gin.Context) {
	if s.Access != nil {
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

// guardOrigin refuses what a foreign web page makes a browser write: a browser adds client certificates by itself, and on
// loopback there may be nothing to add.
func (s *server) guardOrigin(c *gin.Context) {
	if err := s.origins.Check(c.Request); err != nil {
		s.fail(c, &problem{kind: crossOrigin, detail: "a web page of another origin asks for this; only the page of this server may"})
	}
}

// traceContext carries the W3C trace context of a call into its context.
func traceContext(c *gin.Context) {
	r := c.Request
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	c.Request = r.WithContext(ctx)
}

// tellWrites writes one line for each call that may change something: who, what, and what became of it. Bodies and tokens are in no log.
func (s *server) tellWrites(c *gin.Context) {
	c.Next()
	if method := c.Request.Method; method == http.MethodGet || method == http.MethodHead || c.FullPath() == "" {
		return
	}
	s.log.LogAttrs(c.Request.Context(), slog.LevelInfo, "REST write",
		slog.String("caller", callerOf(c).Name), slog.String("operation", s.rules[c.Request.Method+" "+c.FullPath()].operation),
		slog.String("namespace", c.Param("namespace")), slog.String("name", c.Param("name")), slog.Int("status", c.Writer.Status()))
}
