package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// discovered is an API server that knows which resources exist, and nothing else. It answers the first calls about the
// group of RayClusters with a status.
func discovered(t *testing.T, failing int32, status int) *rest.Config {
	t.Helper()
	var calls atomic.Int32
	resources := func(version string, names ...string) metav1.APIResourceList {
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version}
		for _, name := range names {
			plural := strings.ToLower(name) + "s"
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural, Kind: name, Namespaced: name != "Node" && name != "Namespace"})
		}
		return list
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v1 := metav1.GroupVersionForDiscovery{GroupVersion: "ray.io/v1", Version: "v1"}
		ray := metav1.APIGroup{Name: "ray.io", Versions: []metav1.GroupVersionForDiscovery{v1}, PreferredVersion: v1}
		if strings.HasPrefix(r.URL.Path, "/apis/ray.io") && calls.Add(1) <= failing {
			http.Error(w, "not now", status)
			return
		}
		var answer any
		switch r.URL.Path {
		case "/version":
			answer = map[string]string{"major": "1"}
		case "/api":
			answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
		case "/apis":
			answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{ray}}
		case "/apis/ray.io":
			answer = ray
		case "/apis/ray.io/v1":
			answer = resources("ray.io/v1", "RayCluster", "RayJob", "RayService")
		case "/api/v1":
			answer = resources("v1", "Pod", "Node", "Namespace", "ConfigMap", "Event")
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestAStartOutlivesAnAPIServerThatFailsAfterItsFirstAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failing int32
		status  int
		retries int
		says    string
	}{
		{0, 0, 0, ""},
		{1, http.StatusInternalServerError, 1, ""},
		{1, http.StatusTooManyRequests, 1, ""},
		{1, http.StatusNotFound, 1, ""}, // an API server that starts does not serve custom resources for a moment
		{1000, http.StatusNotFound, 2, "making the manager"},
	} {
		t.Run(fmt.Sprint(c.failing, " answers of ", c.status), func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, nil))
			_, err := Connect(t.Context(), discovered(t, c.failing, c.status), Options{Logger: logger}, logger)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
			if retries := strings.Count(log.String(), "does not answer which resources exist"); retries != c.retries {
				t.Errorf("%d retries, want %d: %s", retries, c.retries, log.String())
			}
		})
	}
}

// failing is a transport on which no call succeeds.
type failing struct {
	err    error
	status int // of the answer, if err is nil
}

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.err != nil {
		return nil, f.err
	}
	return &http.Response{StatusCode: f.status, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("x")), Request: r}, nil
}

func TestAStartWaitsForAnAPIServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		server failing
		says   string
	}{
		"it refuses connections":       {failing{err: refused}, "context deadline exceeded"},
		"it is not ready yet":          {failing{status: 503}, "context deadline exceeded"},
		"it knows nobody":              {failing{status: 401}, "making the manager"},
		"who answers is somebody else": {failing{err: &tls.CertificateVerificationError{Err: errors.New("unknown authority")}}, "reaching the API server at https://api.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			log := slog.New(slog.DiscardHandler)
			_, err := Connect(ctx, &rest.Config{Host: "https://api.invalid", Transport: c.server}, Options{Logger: log}, log)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	return file
}

// Anybody who may create a RayCluster can run a head that keeps what it is sent.
func TestNoHeadIsGivenOurOwnToken(t *testing.T) {
	configs := map[string]*rest.Config{
		"token in a file": {BearerTokenFile: tokenFile(t, "own")},
		"token by itself": {BearerToken: "own"},
	}
	wants := nodepool.Cluster{Key: llm, Auth: nodepool.Auth{Required: true, KubernetesToken: true}}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			m := &Manager{config: config}
			if got, err := m.Credentials(t.Context(), wants); err == nil || got.Token != "" {
				t.Errorf("token %q, error %v; want none and an error", got.Token, err)
			}
			m.options.KubernetesTokenFile = tokenFile(t, "ray only")
			if got, err := m.Credentials(t.Context(), wants); err != nil || got.Token != "ray only" {
				t.Errorf("token %q, error %v; want the one that is set aside", got.Token, err)
			}
		})
	}
}

func TestAHeadThatIsNotCalledForWantOfATokenIsAFinding(t *testing.T) {
	asks := map[string]any{"authOptions": map[string]any{"mode": "token", "enableK8sTokenAuth": true}}
	tests := []struct {
		name    string
		spec    map[string]any
		options Options
		want    bool
	}{
		{"no token is set aside", asks, Options{}, true},
		{"one is", asks, Options{KubernetesTokenFile: "token"}, false},
		{"the sidecar, beside which KubeRay put one", asks, Options{Single: &llm}, false},
		{"the head does not ask the API server", map[string]any{}, Options{}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := &Manager{options: test.options, decodes: newDecodeCache(sharing.Reader{}), pool: newPool(nil, nil)}
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "llm"}, "spec": test.spec}}
			cluster := m.describe(object, nil)
			got := slices.ContainsFunc(cluster.Findings, func(f raydemand.Finding) bool { return f.Code == decode.KubernetesTokenUnset })
			if got != test.want {
				t.Errorf("finding: %v, want %v", got, test.want)
			}
		})
	}
}

func TestOptionsThatWouldServeSomethingElseAreRefused(t *testing.T) {
	for want, options := range map[string]Options{
		"at most 63 characters": {Sharded: true, LeaseNamespace: "a", LeaseName: strings.Repeat("x", 64)},
		"Sharded excludes":      {Sharded: true, LeaderElection: true, LeaseNamespace: "a", LeaseName: "x"},
		"want an IP address":    {Address: "example.com:80"},
	} {
		if err := options.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
}
