package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/cmd/autoscaler/engine"
	"heliostat.dev/heliostat/internal/cli"
)

// settled returns the flags of `serve` after it has applied a command line, the text of a config file and the test's
// environment.
func settled(t *testing.T, config string, args ...string) (*pflag.FlagSet, error) {
	t.Helper()
	if config != "" {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config="+file)
	}
	c := engine.Serve()
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return c.Flags(), c.PreRunE(c, nil)
}

func TestAFileGoesBeforeFlagsAndThoseBeforeTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		env, flag, file, want string
	}{
		"nothing says anything":     {want: "info"},
		"the environment":           {env: "debug", want: "debug"},
		"a flag":                    {flag: "--log-level=warn", want: "warn"},
		"a flag and a variable":     {env: "debug", flag: "--log-level=warn", want: "warn"},
		"a file":                    {file: "log-level: error", want: "error"},
		"a file and a variable":     {env: "debug", file: "log-level: error", want: "error"},
		"all three":                 {env: "debug", flag: "--log-level=warn", file: "log-level: error", want: "error"},
		"a variable that is empty":  {env: "", want: "info"},
		"a file of something else":  {flag: "--log-level=warn", file: "mode: shadow", want: "warn"},
		"a file that holds nothing": {flag: "--log-level=warn", file: "# nothing yet", want: "warn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HELIOSTAT_LOG_LEVEL", c.env)
			var args []string
			if c.flag != "" {
				args = append(args, c.flag)
			}
			flags, err := settled(t, c.file, args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := flags.Lookup("log-level").Value.String(); got != c.want {
				t.Errorf("--log-level is %s, want %s", got, c.want)
			}
		})
	}
}

func TestValuesOfEveryTypeAreTaken(t *testing.T) {
	t.Setenv("HELIOSTAT_RESOURCE", "example.com/a=whole,example.com/b=mps")
	t.Setenv("HELIOSTAT_NAMESPACES", "research")
	t.Setenv("HELIOSTAT_INSECURE_NO_AUTH", "true")
	t.Setenv("HELIOSTAT_DRAIN_DEADLINE", "90s")
	flags, err := settled(t, `
namespaces: [ml, "on"]
node-autoscaler: [in-house]
leader-elect: true
kube-api-qps: 12.5
max-in-flight: "1000"
lease-name: 5
poll-rest: 300ms
mode: "off"
`, "--node-autoscaler=given-away")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"resource": "[example.com/a=whole,example.com/b=mps]", "insecure-no-auth": "true", "drain-deadline": "1m30s",
		"namespaces": "[ml,on]", "node-autoscaler": "[in-house]", "leader-elect": "true", "kube-api-qps": "12.5", "max-in-flight": "1000", "lease-name": "5",
		"poll-rest": "300ms", "mode": "off",
	} {
		if got := flags.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", name, got, want)
		}
	}
}

func TestWhatAFileCannotSayIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		says []string
	}{
		"an unknown key":             {"log-levle: debug", []string{"config.yaml", "log-levle", "no flag has this name: want one that --help lists"}},
		"a key twice in one form":    {"log-level: debug\nlog-level: info", []string{"config.yaml", `key "log-level" already set`}},
		"a fraction":                 {"max-in-flight: 1.5", []string{"max-in-flight: 1.5: want a whole number"}},
		"a number without a unit":    {"poll-rest: 5", []string{"poll-rest: 5: want a duration such as 300ms, 90s or 1h30m"}},
		"a duration that is none":    {"poll-rest: soon", []string{`poll-rest: "soon": want a duration`}},
		"a text that is no number":   {`kube-api-qps: "many"`, []string{`kube-api-qps: "many": want a number`}},
		"a string for a truth value": {`leader-elect: "yes"`, []string{`leader-elect: "yes": want true or false`}},
		"a string for a list":        {"namespaces: ml", []string{`namespaces: "ml": want a list of strings`}},
		"a list of numbers":          {"namespaces: [1]", []string{"namespaces: [1]: want a list of strings"}},
		"a list for a string":        {"mode: [shadow]", []string{`mode: ["shadow"]: want managed, shadow or off`}},
		"no value":                   {"mode:", []string{"mode: null: want managed, shadow or off"}},
		"another file":               {"config: /etc/other.yaml", []string{"config: no flag has this name"}},
		"no mapping":                 {"- mode", []string{"config.yaml", "want names of flags"}},
		"a word that is false":       {"mode: off", []string{`config.yaml: mode: false: want managed, shadow or off`}},
		"two documents":              {"mode: shadow\n---\nlog-level: debug", []string{"has 2 YAML documents: want one"}},
		"two mistakes":               {"{moda: shadow, poll-rest: 5}", []string{"moda: no flag has this name", "want a duration"}},
		"a mode that is none":        {"mode: managd", []string{`config.yaml: mode: "managd": want managed, shadow or off`}},
		"a level that is none":       {"log-level: loud", []string{`config.yaml: log-level: "loud": want debug, info, warn or error`}},
		"a format that is none":      {"log-format: xml", []string{`config.yaml: log-format: "xml": want json or text`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settled(t, c.file)
			if err == nil {
				t.Fatal("got no error")
			}
			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("got %v, want it to say %q", err, says)
				}
			}
		})
	}
}

func TestBadSettingsEndTheProgramAsBadFlagsDo(t *testing.T) {
	outsidePods(t)
	t.Setenv("HELIOSTAT_MAX_IN_FLIGHT", "many")
	for _, argv := range [][]string{{"autoscaler", "serve"}, {"ray", "kuberay-autoscaler", "--cluster-name=llm", "--cluster-namespace=ml"}} {
		code, _, errOut := command(t, "", argv...)
		if code != cli.ExitBadInput || !strings.Contains(errOut, `HELIOSTAT_MAX_IN_FLIGHT="many": want a whole number`) {
			t.Errorf("%v: exit %d, %q", argv, code, errOut)
		}
	}
	t.Setenv("HELIOSTAT_MAX_IN_FLIGHT", "")
	for flag, says := range map[string]string{"--kube-api-qps=NaN": "want a number from 0.1", "--kube-api-qps=1e-30": "want a number from 0.1", "--kube-api-qps=-1": "want a number from 0.1",
		"--max-in-flight=-1": "want a whole number from 1", "--pools=/dev/zero": "larger than 4 MiB"} {
		if code, _, errOut := command(t, "", "autoscaler", "serve", flag); code != cli.ExitBadInput || !strings.Contains(errOut, says) {
			t.Errorf("%s: exit %d, %q", flag, code, errOut)
		}
	}
	t.Setenv("HELIOSTAT_LOG_LEVEL", "loud")
	t.Setenv("HELIOSTAT_MODE", "managd")
	const want = "autoscaler: HELIOSTAT_LOG_LEVEL=\"loud\": want debug, info, warn or error\nHELIOSTAT_MODE=\"managd\": want managed, shadow or off\n"
	if code, _, errOut := command(t, "", "autoscaler", "serve"); code != cli.ExitBadInput || errOut != want {
		t.Errorf("exit %d, %q, want %q", code, errOut, want)
	}
	t.Setenv("HELIOSTAT_LOG_LEVEL", "")
	t.Setenv("HELIOSTAT_MODE", "")
	if code, _, errOut := command(t, "", "autoscaler", "serve", "--config=/does/not/exist"); code != cli.ExitBadInput || !strings.Contains(errOut, "reading --config: open /does/not/exist") {
		t.Errorf("exit %d, %q", code, errOut)
	}
}

func TestAFileOfSettingsThatHasNoEndIsRefused(t *testing.T) {
	if code, _, errOut := command(t, "", "autoscaler", "serve", "--config=/dev/zero"); code != cli.ExitBadInput || !strings.Contains(errOut, "/dev/zero is larger than 1 MiB") {
		t.Errorf("exit %d, %q", code, errOut)
	}
}

// TestNoTwoFlagsHaveOneNameForSettings checks that flags differ in more than their hyphens, because such names would be
// the same key. A Service named heliostat also sets variables in the pods of its namespace, such as HELIOSTAT_PORT and
// HELIOSTAT_SERVICE_HOST.
func TestNoTwoFlagsHaveOneNameForSettings(t *testing.T) {
	for _, c := range []*cobra.Command{engine.Serve(), engine.Sidecar()} {
		names := map[string]string{}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			word := strings.ReplaceAll(f.Name, "-", "")
			if names[word] != "" {
				t.Errorf("%s: --%s and --%s are the same key", c.Name(), names[word], f.Name)
			}
			names[word] = f.Name
			if v := cli.Variable(f); strings.HasPrefix(v, "HELIOSTAT_PORT") || strings.HasPrefix(v, "HELIOSTAT_SERVICE") {
				t.Errorf("%s: --%s has the variable of a Service, %s", c.Name(), f.Name, v)
			}
		})
	}
}

// TestWhatEveryFlagTakesIsKnown checks that our own words describe the value of each flag, and not pflag's type name.
func TestWhatEveryFlagTakesIsKnown(t *testing.T) {
	for _, root := range []*cobra.Command{newRoot("autoscaler"), newRoot(rayName)} {
		for _, c := range root.Commands() {
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if kind := f.Value.Type(); kind != "string" && cli.WantedValue(f) == "a string" {
					t.Errorf("%s --%s: of a flag of type %s nothing is known", c.Name(), f.Name, kind)
				}
			})
		}
	}
}

func TestVariablesThatSetNothingAreTold(t *testing.T) {
	known := cli.Variables(engine.Serve().Flags())
	for variable, want := range map[string]bool{
		"HELIOSTAT_LOG_LEVLE=debug": true, "HELIOSTAT_HOME=/tmp": true, "HELIOSTAT_CONFIG_HASH=1": true,
		"HELIOSTAT_LOG_LEVLE=": false, "HELIOSTAT_LOG_LEVEL=debug": false, "HELIOSTAT_CONFIG=/etc/x": false, "HELIOSTAT_SERVER=http://x": false,
		"HELIOSTAT_TOKEN_FILE=/t": false, "HELIOSTAT_CACHE=/var/tmp": false, "HOME=/root": false,
		// Kubernetes sets these variables in pods for the Services heliostat, heliostat-metrics and heliostat-mode.
		"HELIOSTAT_SERVICE_HOST=10.0.0.1": false, "HELIOSTAT_SERVICE_PORT_HTTPS_API=8090": false, "HELIOSTAT_PORT=tcp://10.0.0.1:8090": false,
		"HELIOSTAT_PORT_8090_TCP_PROTO=tcp": false, "HELIOSTAT_METRICS_PORT_9090_TCP=tcp://10.0.0.1:9090": false, "HELIOSTAT_MODE_PORT=tcp://10.0.0.1:9090": false,
	} {
		var log bytes.Buffer
		cli.LogUnknownVariables(known, []string{variable}, slog.New(slog.NewTextHandler(&log, nil)))
		if told := strings.Contains(log.String(), "an environment variable has no effect"); told != want {
			t.Errorf("%s is told by %q, want %v", variable, log.String(), want)
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

func TestEveryFlagOfServeAndOfTheSidecarHasASubject(t *testing.T) {
	for _, c := range []*cobra.Command{engine.Serve(), engine.Sidecar()} {
		for _, s := range cli.GroupsOf(c.Flags()) {
			if s.Title == "" {
				s.Flags.VisitAll(func(f *pflag.Flag) {
					if f.Name != cli.ConfigFlag && !f.Hidden {
						t.Errorf("%s: --%s is in no group", c.Name(), f.Name)
					}
				})
			}
		}
	}
	_, out, _ := command(t, "", "autoscaler", "serve", "--help")
	if strings.Contains(out, "(default [])") {
		t.Error("the help tells of empty lists as defaults")
	}
	for _, s := range cli.GroupsOf(engine.Serve().Flags()) {
		if s.Title != "" && !strings.Contains(out, "\n\n"+s.Title+":\n") {
			t.Errorf("the help has no %s", s.Title)
		}
	}
}

func TestFilesThatNeverEndAreRefusedByName(t *testing.T) {
	dir := t.TempDir()
	sparse := filepath.Join(dir, "sparse.yaml")
	if err := os.WriteFile(sparse, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, 1<<40); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"doctor", "nodepools"} {
		for file, want := range map[string]string{
			sparse: sparse + " has 1099511627776 bytes, and at most 268435456 are read",
			dir:    dir + " is a directory: name the files in it",
		} {
			code, _, errOut := command(t, "", "autoscaler", name, "-f", file)
			if code != cli.ExitBadInput || !strings.Contains(errOut, want) {
				t.Errorf("%s -f %s: %d, %s; want %q", name, file, code, errOut, want)
			}
		}
	}
}

func TestAPipeThatNeverEndsIsReadToTheBound(t *testing.T) {
	for name, most := range map[string]int64{"within a buffer": 10, "over many": 100_000} {
		spaces := endless{' '}
		var given int64
		err := cli.ReadFile("-", "manifests", spaces, most, func(in io.Reader) error {
			n, err := io.Copy(io.Discard, in)
			given = n
			if again, more := in.Read(make([]byte, 1)); again != 0 || more != err {
				t.Errorf("%s: after the bound %d bytes, %v", name, again, more)
			}
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "reading manifests from standard input: it has more than ") || given != most {
			t.Errorf("%s: %d bytes, %v; want %d and then the bound", name, given, err, most)
		}
	}
	if err := cli.ReadFile("-", "manifests", strings.NewReader("0123456789"), 10, func(in io.Reader) error {
		text, err := io.ReadAll(in)
		if string(text) != "0123456789" {
			t.Errorf("read %q", text)
		}
		return err
	}); err != nil {
		t.Errorf("as much as may be read: %v", err)
	}
}

// endless is a pipe with unlimited input.
type endless struct{ char byte }

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.char
	}
	return len(p), nil
}

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
