package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/cmd/autoscaler/engine"
	"heliostat.dev/heliostat/internal/cli"
)

// TestValuesThatMakeNoSenseNameTheFlagTheVariableOrTheKey sets each value on the command line, then with an environment
// variable and in the file of --config, if the flag supports them.
func TestValuesThatMakeNoSenseNameTheFlagTheVariableOrTheKey(t *testing.T) {
	outsidePods(t)
	for _, c := range []struct{ flag, value, yaml, want string }{
		{"poll-rest", "-1s", "-1s", "a duration such as 300ms, 90s or 1h30m, from 10ms to 1h"},
		{"poll-rest", "soon", "soon", "a duration such as"},
		{"poll-rest", "1ns", "1ns", "from 10ms to 1h"},
		{"poll-rest", "0s", "0s", "from 10ms to 1h"},
		{"allocation-timeout", "0s", "0s", "from 1s to 24h"},
		{"drain-deadline", "0s", "0s", "from 1s to 8760h"},
		{"drain-deadline", "-5m", "-5m", "from 1s to 8760h"},
		{"max-in-flight", "0", "0", "a whole number from 1 to 2147483647"},
		{"max-in-flight", "-1", "-1", "a whole number from 1 to 2147483647"},
		{"requests-per-second", "-1", "-1", "a number from 0 to 1000000"},
		{"requests-per-second", "Inf", "", "a number from 0 to 1000000"},
		{"kube-api-qps", "-1", "-1", "a number from 0.1 to 100000"},
		{"pool-label", "%%", `"%%"`, "a label's name such as example.com/pool"},
		{"listen", "8090", `"8090"`, "host:port such as 127.0.0.1:8090"},
		{"listen", ":http", `":http"`, "host:port"},
		{"metrics-bind-address", "0", `"0"`, "host:port"},
		{"health-probe-bind-address", ":99999", `":99999"`, "host:port"},
		{"pprof-bind-address", "localhost", "localhost", "host:port"},
		{"lease-name", "Heliostat!", "Heliostat!", "the name of a Lease"},
		{"lease-namespace", "a.b", "a.b", "the name of a namespace"},
		{"cluster-autoscaler-namespace", "Kube System", "Kube System", "the name of a namespace"},
		{"namespaces", "ml,,research", `[ml, "", research]`, "a list of strings, each the name of a namespace"},
		{"node-autoscaler", "default-scheduler", "[default-scheduler]", "each the source of a node autoscaler's Events"},
		{"token-audiences", "a,,b", `[a, "", b]`, "a list of strings, each an audience"},
		{"mode", "sometimes", "sometimes", "managed, shadow or off"},
		{"log-format", "xml", "xml", "json or text"},
	} {
		code, _, errOut := command(t, "", "autoscaler", "serve", "--"+c.flag+"="+c.value)
		if code != cli.ExitBadInput || !strings.Contains(errOut, "--"+c.flag+` "`+c.value+`": want `) || !strings.Contains(errOut, c.want) {
			t.Errorf("--%s=%s: exit %d, %q, want %q", c.flag, c.value, code, errOut, c.want)
		}
		name := cli.Variable(engine.Serve().Flags().Lookup(c.flag))
		t.Setenv(name, c.value)
		if _, err := settled(t, ""); err == nil || !strings.Contains(err.Error(), name+`="`+c.value+`": want `) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %q", name, c.value, err, c.want)
		}
		t.Setenv(name, "")
		if c.yaml == "" {
			continue
		}
		if _, err := settled(t, c.flag+": "+c.yaml); err == nil || !strings.Contains(err.Error(), "config.yaml: "+c.flag+": ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v, want %q", c.flag, c.yaml, err, c.want)
		}
	}
}

// TestDefaultsMakeSense checks that each flag accepts its own default value, and that a flag accepts 0 or an empty
// value where that disables its feature.
func TestDefaultsMakeSense(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	engine.Serve().Flags().VisitAll(func(f *pflag.Flag) {
		_, isList := f.Value.(pflag.SliceValue)
		if value := f.Value.String(); cli.Settable(f) && !isList {
			if err := f.Value.Set(value); err != nil {
				t.Errorf("--%s is %q by default: %v", f.Name, value, err)
			}
		}
	})
	for _, zero := range []string{"--requests-per-second=0", "--listen=", "--pool-label="} {
		if _, err := settled(t, "", zero); err != nil {
			t.Errorf("%s: %v", zero, err)
		}
	}
}

func TestDurationsAreRoundedWithoutLoss(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Hour: "1h", 10 * time.Minute: "10m", 90 * time.Minute: "1h30m", 10 * time.Second: "10s", time.Hour + time.Second: "1h0m1s"} {
		if got := cli.ShortDuration(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
