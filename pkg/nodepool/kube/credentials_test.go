package kube

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
			m := &Manager{options: test.options, decodes: newDecodeCache(sharing.Reader{}), panics: newPanics(nil)}
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "llm"}, "spec": test.spec}}
			cluster := m.describe(object, nil)
			got := slices.ContainsFunc(cluster.Findings, func(f raydemand.Finding) bool { return f.Code == decode.KubernetesTokenUnset })
			if got != test.want {
				t.Errorf("finding: %v, want %v", got, test.want)
			}
		})
	}
}
