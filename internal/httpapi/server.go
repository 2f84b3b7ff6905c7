package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/api"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Limits of a connection. A client that sends slower than this holds a connection, not the server.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	maxHeader         = 16 << 10
	// kubernetesTimeout bounds what a call may wait for Kubernetes; it ends well before writeTimeout.
	kubernetesTimeout = 10 * time.Second
)

// NewServer returns the REST server, ready for ListenAndServe. It starts nothing.
func NewServer(config Config) (*http.Server, error) {
	handler, err := NewHandler(config)
	if err != nil {
		return nil, err
	}
	return &http.Server{
		Addr:              config.listen(),
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(newServerState(config).log.Handler(), slog.LevelDebug),
	}, nil
}

// NewHandler returns what NewServer serves, without the limits of a connection.
func NewHandler(config Config) (http.Handler, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := newServerState(config)
	gin.SetMode(gin.ReleaseMode) // otherwise gin prints its routes
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.Use(s.logCalls, s.recoverPanics, s.guardHost, setHeaders)
	engine.NoRoute(func(c *gin.Context) {
		s.fail(c, &problem{kind: unknownPath, detail: "there is nothing here; /openapi.yaml lists every path"})
	})
	engine.NoMethod(func(c *gin.Context) {
		s.fail(c, &problem{kind: unknownMethod, detail: c.Request.Method + " is not possible here; Allow names what is"})
	})
	RegisterHandlersWithOptions(engine, s, GinServerOptions{
		Middlewares: []MiddlewareFunc{s.checkNames},
		ErrorHandler: func(c *gin.Context, err error, _ int) {
			s.fail(c, &problem{kind: invalidRequest, detail: err.Error()})
		},
	})
	return engine, nil
}

// server implements the generated ServerInterface.
type server struct {
	Config
	log *slog.Logger
	now func() time.Time
}

func newServerState(config Config) *server {
	s := &server{Config: config, log: config.Log, now: config.Now}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// ListClusters serves GET /v1/rayclusters.
func (s *server) ListClusters(c *gin.Context) {
	s.writeList(c, func(View) bool { return true })
}

// ListNamespaceClusters serves GET /v1/namespaces/{namespace}/rayclusters.
func (s *server) ListNamespaceClusters(c *gin.Context, namespace Namespace) {
	s.writeList(c, func(v View) bool { return v.Key.Namespace == namespace })
}

func (s *server) writeList(c *gin.Context, wanted func(View) bool) {
	views := slices.SortedFunc(slices.Values(s.Fleet.Views()), byKey)
	answer, now := ClusterList{Items: []ClusterSummary{}}, s.now()
	for _, view := range views {
		if wanted(view) {
			answer.Items = append(answer.Items, view.summary(now))
		}
	}
	write(c, http.StatusOK, "application/json", answer)
}

// GetCluster serves GET …/rayclusters/{name}.
func (s *server) GetCluster(c *gin.Context, namespace Namespace, name Name) {
	view, err := s.view(namespace, name)
	if err != nil {
		s.fail(c, err)
		return
	}
	write(c, http.StatusOK, "application/json", view.cluster(s.now()))
}

// GetSnapshot serves GET …/rayclusters/{name}/snapshot.
func (s *server) GetSnapshot(c *gin.Context, namespace Namespace, name Name) {
	view, err := s.view(namespace, name)
	if err == nil && view.CycleAt.IsZero() {
		err = &problem{kind: unavailable, detail: fmt.Sprintf("no decision about %s was made yet", view.Key)}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	write(c, http.StatusOK, "application/json", view.Snapshot)
}

func (s *server) view(namespace, name string) (View, error) {
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	view, ok := s.Fleet.View(key)
	if !ok {
		return View{}, &problem{
			kind:   unknownCluster,
			detail: fmt.Sprintf("there is no RayCluster %s among those that Heliostat looks after", key),
		}
	}
	return view, nil
}

// GetRequestedResources serves GET …/request_resources.
func (s *server) GetRequestedResources(c *gin.Context, namespace Namespace, name Name) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	kept, since, err := s.Requests.Get(ctx, key)
	if err != nil {
		s.fail(c, fmt.Errorf("reading what is requested for %s: %w", key, err))
		return
	}
	write(c, http.StatusOK, "application/json", requested(kept, since))
}

// RequestResources serves POST …/request_resources.
func (s *server) RequestResources(c *gin.Context, namespace Namespace, name Name) {
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
	requests := read.Merged()
	since, err := s.keep(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, requests)
	if err != nil {
		s.fail(c, err)
		return
	}
	write(c, http.StatusOK, "application/json", requested(requests, since))
}

// ClearRequestedResources serves DELETE …/request_resources.
func (s *server) ClearRequestedResources(c *gin.Context, namespace Namespace, name Name) {
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

func requested(requests []raydemand.Request, since time.Time) Requested {
	if len(requests) == 0 {
		since = time.Time{}
	}
	return Requested{Requested: list(requests), Since: moment(since)}
}

func equalRequests(a, b []raydemand.Request) bool {
	return slices.EqualFunc(a, b, func(a, b raydemand.Request) bool {
		sameSelectors := slices.EqualFunc(a.Selectors, b.Selectors, func(a, b raydemand.Selector) bool {
			return a.String() == b.String()
		})
		return a.Count == b.Count && a.Bundle.Equal(b.Bundle) && a.Slice.Equal(b.Slice) && sameSelectors
	})
}

// readBody reads a JSON body within the limit. Without a body there need not be a content type.
func readBody(c *gin.Context) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, &problem{kind: tooLarge, detail: fmt.Sprintf("the body is larger than %d bytes", over.Limit)}
	case err != nil:
		return nil, &problem{kind: invalidRequest, detail: "the body ended early: " + err.Error()}
	}
	if declared := c.GetHeader("Content-Type"); len(body) > 0 || declared != "" {
		// Insisting on the type also keeps out forms that a foreign web page could send without asking first.
		if got, _, err := mime.ParseMediaType(declared); err != nil || got != "application/json" {
			return nil, &problem{kind: mediaType, detail: fmt.Sprintf("Content-Type is %q, want application/json", shorten(declared))}
		}
	}
	return body, nil
}

// namePattern is a DNS name; api/openapi.yaml repeats it.
var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// checkNames refuses path parameters that cannot name an object, before they are put into a Kubernetes path.
func (s *server) checkNames(c *gin.Context) {
	limits := []struct {
		param, expected string
		length          int
	}{
		{"namespace", "a DNS label of at most 63 characters", 63},
		{"name", "a DNS name of at most 253 characters", 253},
	}
	var faults []FieldError
	for _, limit := range limits {
		value, given := c.Params.Get(limit.param)
		dotted := limit.param == "namespace" && slices.Contains([]byte(value), '.')
		if given && (len(value) > limit.length || dotted || !namePattern.MatchString(value)) {
			faults = append(faults, FieldError{Field: limit.param, Value: shorten(value), Expected: limit.expected})
		}
	}
	if len(faults) > 0 {
		s.fail(c, invalid(faults))
	}
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
