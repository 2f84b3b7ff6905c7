package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/cmd/autoscaler/engine"
	"heliostat.dev/heliostat/internal/cli"
)

// settled returns the flags of `serve` after it has applied a command line and the test's environment.
func settled(t *testing.T, args ...string) (*pflag.FlagSet, error) {
	t.Helper()
	c := engine.Serve()
	must(t, c.ParseFlags(args))
	return c.Flags(), c.PreRunE(c, nil)
}

func TestFlagsOfEveryTypeGoBeforeTheEnvironment(t *testing.T) {
	for variable, value := range map[string]string{"RESOURCE": "example.com/a=whole,example.com/b=mps", "NAMESPACES": "research", "INSECURE_NO_AUTH": "true",
		"DRAIN_DEADLINE": "90s", "LOG_LEVEL": "debug", "LEASE_NAME": "", "KUBE_API_QPS": "12.5"} {
		t.Setenv("HELIOSTAT_"+variable, value)
	}
	flags, err := settled(t, "--log-level=warn")
	must(t, err)
	for name, want := range map[string]string{"resource": "[example.com/a=whole,example.com/b=mps]", "insecure-no-auth": "true", "drain-deadline": "1m30s",
		"namespaces": "[research]", "log-level": "warn", "lease-name": "heliostat", "kube-api-qps": "12.5"} {
		if got := flags.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", name, got, want)
		}
	}
}

func TestBadSettingsEndTheProgramAsBadFlagsDo(t *testing.T) {
	outsidePods(t)
	t.Setenv("HELIOSTAT_MAX_IN_FLIGHT", "many")
	for _, argv := range [][]string{{"autoscaler", "serve"}, {"ray", "kuberay-autoscaler", "--cluster-name=llm", "--cluster-namespace=ml"}} {
		code, _, errOut := command(t, "", argv...)
		if code != cli.ExitBadInput || !strings.Contains(errOut, `HELIOSTAT_MAX_IN_FLIGHT: invalid argument "many" for "--max-in-flight" flag: want a whole number`) {
			t.Errorf("%v: exit %d, %q", argv, code, errOut)
		}
	}
	t.Setenv("HELIOSTAT_MAX_IN_FLIGHT", "")
	for flag, says := range map[string]string{"--kube-api-qps=NaN": "want a number from 0.1", "--kube-api-qps=1e-30": "want a number from 0.1", "--kube-api-qps=-1": "want a number from 0.1",
		"--max-in-flight=-1": "want a whole number from 1", "--pools=/dev/zero": "it has more than 4194304 bytes"} {
		if code, _, errOut := command(t, "", "autoscaler", "serve", flag); code != cli.ExitBadInput || !strings.Contains(errOut, says) {
			t.Errorf("%s: exit %d, %q", flag, code, errOut)
		}
	}
}

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

// TestValuesThatMakeNoSenseNameTheFlagOrTheVariable sets each value on the command line, then with an environment
// variable.
func TestValuesThatMakeNoSenseNameTheFlagOrTheVariable(t *testing.T) {
	outsidePods(t)
	for _, c := range []struct{ flag, value, want string }{
		{"poll-rest", "-1s", "a duration such as 300ms, 90s or 1h30m, from 10ms to 1h0m0s"},
		{"poll-rest", "soon", "a duration such as"},
		{"poll-rest", "1ns", "from 10ms to 1h0m0s"},
		{"poll-rest", "0s", "from 10ms to 1h0m0s"},
		{"allocation-timeout", "0s", "from 1s to 24h0m0s"},
		{"drain-deadline", "0s", "from 1s to 8760h0m0s"},
		{"drain-deadline", "-5m", "from 1s to 8760h0m0s"},
		{"max-in-flight", "0", "a whole number from 1 to 2147483647"},
		{"max-in-flight", "-1", "a whole number from 1 to 2147483647"},
		{"requests-per-second", "-1", "a number from 0 to 1000000"},
		{"requests-per-second", "Inf", "a number from 0 to 1000000"},
		{"kube-api-qps", "-1", "a number from 0.1 to 100000"},
		{"pool-label", "%%", "a label's name such as example.com/pool"},
		{"listen", "8090", "host:port such as 127.0.0.1:8090"},
		{"listen", ":http", "host:port"},
		{"metrics-bind-address", "0", "host:port"},
		{"health-probe-bind-address", ":99999", "host:port"},
		{"pprof-bind-address", "localhost", "host:port"},
		{"lease-name", "Heliostat!", "the name of a Lease"},
		{"lease-namespace", "a.b", "the name of a namespace"},
		{"cluster-autoscaler-namespace", "Kube System", "the name of a namespace"},
		{"mode", "sometimes", "managed, shadow or off"},
		{"log-format", "xml", "json or text"},
	} {
		wrong := fmt.Sprintf("invalid argument %q for \"--%s\" flag: want ", c.value, c.flag)
		code, _, errOut := command(t, "", "autoscaler", "serve", "--"+c.flag+"="+c.value)
		if code != cli.ExitBadInput || !strings.Contains(errOut, wrong) || !strings.Contains(errOut, c.want) {
			t.Errorf("--%s=%s: exit %d, %q, want %q", c.flag, c.value, code, errOut, c.want)
		}
		name := cli.Variable(engine.Serve().Flags().Lookup(c.flag))
		t.Setenv(name, c.value)
		if _, err := settled(t); err == nil || !strings.Contains(err.Error(), name+": "+wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %q", name, c.value, err, c.want)
		}
		t.Setenv(name, "")
	}
}

// TestDefaultsMakeSense checks that each flag accepts its own default value, and that a flag accepts 0 or an empty
// value where that disables its feature.
func TestDefaultsMakeSense(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	engine.Serve().Flags().VisitAll(func(f *pflag.Flag) {
		_, isList := f.Value.(pflag.SliceValue)
		if value := f.Value.String(); f.Name != "help" && !isList {
			if err := f.Value.Set(value); err != nil {
				t.Errorf("--%s is %q by default: %v", f.Name, value, err)
			}
		}
	})
	for _, zero := range []string{"--requests-per-second=0", "--listen=", "--pool-label="} {
		if _, err := settled(t, zero); err != nil {
			t.Errorf("%s: %v", zero, err)
		}
	}
}
