package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/api"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// NewServer returns the REST server, ready for ListenAndServe. It starts nothing.
func NewServer(config Config) (*http.Server, error) {
	handler, s, err := build(config)
	if err != nil {
		return nil, err
	}
	running := &http.Server{
		Addr:              cmp.Or(config.Listen, DefaultListen),
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		TLSConfig:         config.TLS,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	cancelAtShutdown(running)
	return running, nil
}

// FinishWithin is how long running calls may take after Shutdown of the server begins. Then each unfinished call gets a
// 503, so callers of Shutdown should wait a little longer.
const FinishWithin = 2 * time.Second

// cancelAtShutdown cancels running calls FinishWithin after the shutdown of a server begins.
func cancelAtShutdown(running *http.Server) {
	ctx, cancel := context.WithCancelCause(context.Background())
	running.BaseContext = func(net.Listener) context.Context { return ctx }
	running.RegisterOnShutdown(func() { time.AfterFunc(FinishWithin, func() { cancel(errShutdown) }) })
}

// NewHandler returns the handler of NewServer, without the limits of a connection.
func NewHandler(config Config) (http.Handler, error) {
	handler, _, err := build(config)
	return handler, err
}

func build(config Config) (http.Handler, *server, error) {
	if err := config.Validate(); err != nil {
		return nil, nil, err
	}
	s := newServer(config)
	gin.SetMode(gin.ReleaseMode) // otherwise gin prints its routes
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.Use(s.logCalls, setHeaders, s.recoverPanics, s.guard.Host, s.guard.Origin,
		s.logWrites, s.guard.Caller, s.guard.Query, s.relay.PassOn)
	engine.NoRoute(func(c *gin.Context) {
		s.fail(c, kindUnknownPath, "there is nothing at this path; /openapi.yaml lists all paths")
	})
	engine.NoMethod(func(c *gin.Context) {
		s.fail(c, kindUnknownMethod, c.Request.Method+" is not allowed here; see the Allow header")
	})
	RegisterHandlersWithOptions(engine, s, GinServerOptions{
		ErrorHandler: func(c *gin.Context, err error, _ int) { s.fail(c, kindInvalidRequest, err.Error()) },
	})
	return engine, s, checkRoutes(engine.Routes())
}

// server implements the generated ServerInterface.
type server struct {
	Config
	answers *answers
	guard   *guard
	relay   *relay
	plans   chan struct{} // has a token for each running plan
}

func newServer(config Config) *server {
	s := &server{Config: config, plans: make(chan struct{}, maxPlans)}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Costs == nil {
		s.Costs = ledger.New(ledger.Limits{})
	}
	s.answers = &answers{s.Log}
	s.relay = newRelay(s.Config, s.answers)
	s.guard = &guard{
		access: config.Access, callers: newCallerLimits(config.RequestsPerSecond),
		origins: http.NewCrossOriginProtection(), answers: s.answers, now: s.Now,
	}
	return s
}

func (s *server) answer(c *gin.Context, body any, err error) {
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	s.answers.JSON(c, http.StatusOK, body)
}

func (s *server) fail(c *gin.Context, kind problemKind, detail string) {
	s.answers.Fail(c, &problem{Kind: kind, Detail: detail})
}

// view returns the view of a cluster, an empty one if there is none.
func (s *server) view(namespace, name string) (View, error) {
	view, exists := s.Fleet.View(nodepool.ClusterKey{Namespace: namespace, Name: name})
	if exists {
		return view, nil
	}
	if err := s.incomplete(); err != nil {
		return View{Decision: &addon.Decision{}}, err
	}
	return View{Decision: &addon.Decision{}}, nodepool.ErrGone
}

// decided returns the view of a cluster that has a decision.
func (s *server) decided(namespace, name string) (View, error) {
	view, err := s.view(namespace, name)
	if err == nil && view.At.IsZero() {
		err = &problem{
			Kind:   kindUnavailable,
			Detail: fmt.Sprintf("there is no decision about %s yet", view.Cluster),
		}
	}
	return view, err
}

// incomplete returns an error while lists may lack clusters.
func (s *server) incomplete() error {
	if s.Leadership == nil || s.Leadership.Settled() {
		return nil
	}
	detail := "this replica has just become the leader and has not looked at every RayCluster yet"
	return &problem{Kind: kindUnavailable, Detail: detail}
}

// Healthz serves GET /healthz.
func (s *server) Healthz(c *gin.Context) { c.String(http.StatusOK, "ok\n") }

// Readyz serves GET /readyz.
func (s *server) Readyz(c *gin.Context) {
	if s.Ready != nil {
		if err := s.Ready(); err != nil {
			s.fail(c, kindUnavailable, "not ready: "+err.Error())
			return
		}
	}
	c.String(http.StatusOK, "ok\n")
}

// Metrics serves GET /metrics.
func (s *server) Metrics(c *gin.Context) { s.delegate(c, s.Config.Metrics) }

// Page serves GET /.
func (s *server) Page(c *gin.Context) { s.delegate(c, s.Config.Page) }

// Openapi serves GET /openapi.yaml.
func (s *server) Openapi(c *gin.Context) { c.Data(http.StatusOK, "application/yaml", api.Spec) }

func (s *server) delegate(c *gin.Context, to http.Handler) {
	if to == nil {
		s.notServed(c)
		return
	}
	to.ServeHTTP(c.Writer, c.Request)
}

// notServed answers calls to parts of the API that this server has no backend for.
func (s *server) notServed(c *gin.Context) {
	s.fail(c, kindUnknownPath, "this server does not serve this path")
}

// logCalls logs each call at debug level. Paths contain names of namespaces and clusters, never secrets.
func (s *server) logCalls(c *gin.Context) {
	start := s.Now()
	c.Next()
	if s.Log.Enabled(c.Request.Context(), slog.LevelDebug) {
		s.Log.Debug("REST call", "method", c.Request.Method, "path", c.Request.URL.Path, "status", c.Writer.Status(),
			"seconds", s.Now().Sub(start).Seconds())
	}
}

// logWrites logs each call that can change something: the caller, the operation and its status. Bodies and tokens are
// never in the log.
func (s *server) logWrites(c *gin.Context) {
	c.Next()
	if method := c.Request.Method; method == http.MethodGet || method == http.MethodHead || c.FullPath() == "" {
		return
	}
	s.Log.LogAttrs(c.Request.Context(), slog.LevelInfo, "REST write",
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
