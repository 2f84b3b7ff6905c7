package kube

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// TestCallsNameTheirProcess checks the user agents that an audit log shows: of a shard, and of its calls about Leases.
func TestCallsNameTheirProcess(t *testing.T) {
	var mu sync.Mutex
	agents := map[string]string{}
	config := discovered(t, 0, 0)
	config.UserAgent = "heliostat/1.2.3"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return noting(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			agents[r.Method+" "+r.URL.Path] = r.UserAgent()
			mu.Unlock()
			return next.RoundTrip(r)
		})
	})
	m, err := NewManager(config, Options{Sharded: true, LeaseNamespace: "ns", LeaseName: "heliostat",
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	// The server has no RayClusters, so the call fails.
	_, _ = m.rayClusters.Namespace("ml").Patch(t.Context(), "llm", types.JSONPatchType, []byte("[]"), metav1.PatchOptions{})
	own := "heliostat/1.2.3 shard/" + m.Shards().ID()
	if got := agents["PATCH /apis/ray.io/v1/namespaces/ml/rayclusters/llm"]; got != own {
		t.Errorf("a patch is from %q, want %q", got, own)
	}
	for call, got := range agents {
		if !strings.HasPrefix(got, own) {
			t.Errorf("%s is from %q, want %q", call, got, own)
		}
	}
	if got := naming(&rest.Config{}, "shards").UserAgent; got != rest.DefaultKubernetesUserAgent()+" shards" {
		t.Errorf("without a user agent: %q", got)
	}
}

// noting is a transport.
type noting func(*http.Request) (*http.Response, error)

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) { return n(r) }
