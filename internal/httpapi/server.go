package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/api"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// NewServer returns the REST server, ready for ListenAndServe. It starts nothing.
func NewServer(config Config) (*http.Server, error) {
	running, _, err := newServer(config)
	return running, err
}

func newServer(config Config) (*http.Server, *server, error) {
	handler, s, err := build(config)
	if err != nil {
		return nil, nil, err
	}
	running := &http.Server{
		Addr:              config.listen(),
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderRead,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		TLSConfig:         config.TLS,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	endCalls(running)
	running.RegisterOnShutdown(s.relay.close)
	if config.Hub != nil {
		running.RegisterOnShutdown(config.Hub.Close)
	}
	return running, s, nil
}

// NewHandler returns what NewServer serves, without the limits of a connection.
func NewHandler(config Config) (http.Handler, error) {
	handler, _, err := build(config)
	return handler, err
}

func build(config Config) (http.Handler, *server, error) {
	if err := config.Validate(); err != nil {
		return nil, nil, err
	}
	s := newServerState(config)
	gin.SetMode(gin.ReleaseMode) // otherwise gin prints its routes
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.Use(s.logCalls, setHeaders, s.countAnswers, s.recoverPanics, s.limitHeader, s.guardHost, s.guardOrigin, traceContext, s.tellWrites, s.guard, s.checkQuery, s.passOn)
	engine.NoRoute(func(c *gin.Context) {
		s.fail(c, &problem{kind: unknownPath, detail: "there is nothing here; /openapi.yaml lists every path"})
	})
	engine.NoMethod(func(c *gin.Context) {
		s.fail(c, &problem{kind: unknownMethod, detail: c.Request.Method + " is not possible here; Allow names what is"})
	})
	RegisterHandlersWithOptions(engine, s, GinServerOptions{
		ErrorHandler: func(c *gin.Context, err error, _ int) {
			s.fail(c, &problem{kind: invalidRequest, detail: err.Error()})
		},
	})
	var err error
	if s.rules, err = rulesOf(engine.Routes()); err != nil {
		return nil, nil, err
	}
	return engine, s, nil
}

// server implements the generated ServerInterface.
type server struct {
	Config
	log     *slog.Logger
	plans   *planRoom
	relay   *relay
	now     func() time.Time
	rules   map[string]rule // by method and route
	pacer   *pacer
	answers *answers
	origins *http.CrossOriginProtection
}

func newServerState(config Config) *server {
	s := &server{
		Config: config, log: config.Log, now: config.Now,
		plans: newPlanRoom(plansAtOnce), relay: newRelay(config.Peers),
		pacer: newPacer(config.RequestsPerSecond), answers: newAnswers(), origins: http.NewCrossOriginProtection(),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.Hub != nil {
		s.Hub.fleet = s.Fleet
	}
	return s
}

// ListClusters serves GET /v1/rayclusters.
func (s *server) ListClusters(c *gin.Context) {
	s.writeList(c, func(View) bool { return true })
}

// ListNamespaceClusters serves GET /v1/namespaces/{namespace}/rayclusters.
func (s *server) ListNamespaceClusters(c *gin.Context, namespace apiv1.Namespace) {
	s.writeList(c, func(v View) bool { return v.Key.Namespace == namespace })
}

func (s *server) writeList(c *gin.Context, wanted func(View) bool) {
	if err := s.notWhole(); err != nil {
		s.fail(c, err)
		return
	}
	views := slices.SortedFunc(slices.Values(s.Fleet.Views()), byKey)
	seen, err := s.visible(c, namespacesOf(views))
	if err != nil {
		s.fail(c, err)
		return
	}
	answer, now := apiv1.ClusterList{Items: []apiv1.ClusterSummary{}}, s.now()
	for _, view := range views {
		if seen[view.Key.Namespace] && wanted(view) {
			answer.Items = append(answer.Items, view.summary(now))
		}
	}
	write(c, http.StatusOK, "application/json", answer)
}

func namespacesOf(views []View) []string {
	namespaces := make([]string, 0, len(views))
	for _, view := range views {
		namespaces = append(namespaces, view.Key.Namespace)
	}
	return namespaces
}

// GetCluster serves GET …/rayclusters/{name}.
func (s *server) GetCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.view(namespace, name)
	if err != nil {
		s.fail(c, err)
		return
	}
	write(c, http.StatusOK, "application/json", view.cluster(s.now()))
}

// GetSnapshot serves GET …/rayclusters/{name}/snapshot.
func (s *server) GetSnapshot(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.decided(namespace, name)
	if err != nil {
		s.fail(c, err)
		return
	}
	write(c, http.StatusOK, "application/json", view.Snapshot)
}

// decided is the view of a cluster about which there is a decision.
func (s *server) decided(namespace, name string) (View, error) {
	view, err := s.view(namespace, name)
	if err == nil && view.CycleAt.IsZero() {
		err = &problem{kind: unavailable, detail: fmt.Sprintf("no decision about %s was made yet", view.Key)}
	}
	return view, err
}

func (s *server) view(namespace, name string) (View, error) {
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	view, ok := s.Fleet.View(key)
	if !ok && s.notWhole() != nil {
		return View{}, s.notWhole()
	}
	if !ok {
		return View{}, nodepool.ErrGone
	}
	return view, nil
}

// GetRequestedResources serves GET …/request_resources.
func (s *server) GetRequestedResources(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	kept, since, err := s.Requests.Get(ctx, key)
	if err != nil {
		s.fail(c, fmt.Errorf("reading what is requested for %s: %w", key, err))
		return
	}
	write(c, http.StatusOK, "application/json", s.requested(key, kept, since))
}

// RequestResources serves POST …/request_resources.
func (s *server) RequestResources(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	body, err := readBody(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	read, err := decodeRequest(body)
	if err != nil {
		s.fail(c, err)
		return
	}
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	if err := s.checkSpelling(key, bundlesOf(read)); err != nil {
		s.fail(c, err)
		return
	}
	requests := read.Merged()
	since, err := s.keep(c, key, requests)
	if err != nil {
		s.fail(c, err)
		return
	}
	write(c, http.StatusOK, "application/json", s.requested(key, requests, since))
}

// ClearRequestedResources serves DELETE …/request_resources.
func (s *server) ClearRequestedResources(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	if _, err := s.keep(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, nil); err != nil {
		s.fail(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}

// keep replaces the request. Asking again for what is kept already does not make it younger; it is written all the same,
// because what was read may be older than another caller's write.
func (s *server) keep(c *gin.Context, key nodepool.ClusterKey, requests []raydemand.Request) (time.Time, error) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	before, since, err := s.Requests.Get(ctx, key)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading what is requested for %s: %w", key, err)
	}
	if !equalRequests(before, requests) {
		since = s.now().Truncate(time.Second)
	}
	return since, s.Requests.Set(ctx, key, requests, since)
}

func (s *server) requested(key nodepool.ClusterKey, requests []raydemand.Request, since time.Time) apiv1.Requested {
	if len(requests) == 0 {
		since = time.Time{}
	}
	return apiv1.Requested{Requested: list(requests), Since: moment(since), NotScaled: s.notScaled(key)}
}

// notScaled says why a RayCluster is not scaled; empty where it is, and where nothing is known of it yet.
func (s *server) notScaled(key nodepool.ClusterKey) string {
	if view, there := s.Fleet.View(key); there && view.Mode != nodepool.Managed {
		return view.ModeReason
	}
	return ""
}

func equalRequests(a, b []raydemand.Request) bool {
	return slices.EqualFunc(a, b, func(a, b raydemand.Request) bool {
		sameSelectors := slices.EqualFunc(a.Selectors, b.Selectors, func(a, b raydemand.Selector) bool {
			return a.String() == b.String()
		})
		return a.Count == b.Count && a.Bundle.Equal(b.Bundle) && a.Slice.Equal(b.Slice) && sameSelectors
	})
}

// Healthz serves GET /healthz.
func (s *server) Healthz(c *gin.Context) { c.String(http.StatusOK, "ok\n") }

// Readyz serves GET /readyz.
func (s *server) Readyz(c *gin.Context) {
	if s.Ready != nil {
		if err := s.Ready(); err != nil {
			s.fail(c, &problem{kind: unavailable, detail: "not ready: " + err.Error()})
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
		s.fail(c, &problem{kind: unknownPath, detail: "this is not served here"})
		return
	}
	to.ServeHTTP(c.Writer, c.Request)
}
