package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"heliostat.dev/heliostat/cmd/autoscaler/engine"
	"heliostat.dev/heliostat/internal/cli"
)

// outsidePods removes the environment variables that point to an API server.
func outsidePods(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
}

func TestServeNamesBadFlagsBeforeAnythingStarts(t *testing.T) {
	outsidePods(t)
	t.Setenv("RAY_CLUSTER_NAME", "")
	t.Setenv("RAY_CLUSTER_NAMESPACE", "")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"autoscaler", "serve", "--mode", "sometimes"}, "mode"},
		{[]string{"autoscaler", "serve", "--log-format", "xml"}, "--log-format"},
		{[]string{"autoscaler", "serve", "--kubeconfig", "/does/not/exist"}, "/does/not/exist"},
		{[]string{"autoscaler", "serve"}, "--kubeconfig"},
		{[]string{"autoscaler", "serve", "now"}, "now"},
		{[]string{"autoscaler", "serve", "--cluster-autoscaler-namespace", "Kube System"}, "Kube System"},
		{[]string{"autoscaler", "serve", "--node-autoscaler", "in-house/compute", "--node-autoscaler", "default-scheduler"}, "default-scheduler"},
		{[]string{"autoscaler", "serve", "--listen", "0.0.0.0:8090", "--insecure-no-auth"}, "let anybody"},
		{[]string{"autoscaler", "serve", "--tls-key-file", "key.pem"}, `--tls-key-file "key.pem"`},
		{[]string{"autoscaler", "serve", "--resource", "example.com/gpu=large"}, "example.com/gpu=large"},
		{[]string{"autoscaler", "serve", "--resource", "example.com/gpu=mps", "--pool-label", "example.com/pool"}, "--kubeconfig"},
		{[]string{"ray", "kuberay-autoscaler", "--cluster-name", "llm", "--cluster-namespace", "ml", "--resource", "gpu=mps"}, "gpu=mps"},
		{[]string{"ray", "kuberay-autoscaler"}, "--cluster-name"},
		{[]string{"ray", "kuberay-autoscaler", "--cluster-name", "llm"}, "--cluster-namespace"},
	} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), c.args, strings.NewReader(""), &out, &errOut)
		if code != cli.ExitBadInput || !strings.Contains(errOut.String(), c.want) {
			t.Errorf("%v: exit %d, %q; want exit 2 naming %q", c.args, code, errOut.String(), c.want)
		}
	}
}

// TestTheSidecarAcceptsFlagsOfRaysOwn checks flags that only Ray's own autoscaler has, because newer operators may pass
// them.
func TestTheSidecarAcceptsFlagsOfRaysOwn(t *testing.T) {
	outsidePods(t)
	var out, errOut bytes.Buffer
	args := []string{"ray", "kuberay-autoscaler", "--cluster-name", "llm", "--cluster-namespace", "ml", "--some-new-flag", "5", "--another"}
	code := run(t.Context(), args, strings.NewReader(""), &out, &errOut)
	if code != cli.ExitBadInput || !strings.Contains(errOut.String(), "finding the API server") {
		t.Errorf("exit %d, %q; want it to get as far as looking for the API server", code, errOut.String())
	}
}

func TestASidecarServesMetricsWhereRaysOwnDid(t *testing.T) {
	flags := engine.Sidecar().Flags()
	if got := flags.Lookup("metrics-bind-address").Value.String(); got != ":44217" {
		t.Errorf("a sidecar's metrics are at %q, want :44217, which RayClusters call as-metrics", got)
	}
}
