package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		"a file in one word":        {file: "logLevel: error", want: "error"},
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
leaderElect: true
kubeAPIQPS: 12.5
max-in-flight: 1000
pollRest: 300ms
mode: "off"
`, "--node-autoscaler=given-away")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"resource": "[example.com/a=whole,example.com/b=mps]", "insecure-no-auth": "true", "drain-deadline": "1m30s",
		"namespaces": "[ml,on]", "node-autoscaler": "[in-house]", "leader-elect": "true", "kube-api-qps": "12.5", "max-in-flight": "1000",
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
		"an unknown key":             {"log-levle: debug", []string{"config.yaml", "log-levle", "no flag has this name: want log-level"}},
		"a key in the other form":    {"log_level: debug", []string{"log_level", "no flag has this name: want log-level"}},
		"a key twice in two forms":   {"{log-level: debug, logLevel: info}", []string{"log-level and logLevel", "want one of them"}},
		"a key twice in one form":    {"log-level: debug\nlog-level: info", []string{"config.yaml", "log-level"}},
		"a number for a string":      {"lease-name: 5", []string{"config.yaml: lease-name: 5: want a string"}},
		"a string for a number":      {`kube-api-qps: "5"`, []string{`kube-api-qps: "5": want a number`}},
		"a fraction":                 {"max-in-flight: 1.5", []string{"max-in-flight: 1.5: want a whole number"}},
		"a number without a unit":    {"poll-rest: 5", []string{"poll-rest: 5: want a duration such as 300ms, 90s or 1h30m"}},
		"a duration that is none":    {"poll-rest: soon", []string{`poll-rest: "soon": want a duration`}},
		"a string for a truth value": {`leader-elect: "yes"`, []string{`leader-elect: "yes": want true or false`}},
		"a string for a list":        {"namespaces: ml", []string{`namespaces: "ml": want a list of strings`}},
		"a list of numbers":          {"namespaces: [1]", []string{"namespaces: [1]: want a list of strings"}},
		"a list for a string":        {"mode: [shadow]", []string{`mode: ["shadow"]: want managed, shadow or off`}},
		"no value":                   {"mode:", []string{"mode: null: want managed, shadow or off"}},
		"another file":               {"config: /etc/other.yaml", []string{"config: no flag has this name"}},
		"no mapping":                 {"- mode", []string{"config.yaml", "want names of flags"}},
		"a word that is false":       {"mode: off", []string{`config.yaml: mode: false: want managed, shadow or off, in quotes if YAML would parse it as another type, such as "off"`}},
		"two documents":              {"mode: shadow\n---\nlog-level: debug", []string{"has 2 YAML documents: want one"}},
		"two mistakes":               {"{moda: shadow, poll-rest: 5}", []string{"moda: no flag has this name: want mode", "want a duration"}},
		"a key near to none":         {"colour: red", []string{"config.yaml: colour: no flag has this name: want one that --help lists"}},
		"a mode that is none":        {"mode: managd", []string{`config.yaml: mode: "managd": want managed, shadow or off`}},
		"a level that is none":       {"log-level: loud", []string{`config.yaml: log-level: "loud": want debug, info, warn or error`}},
		"a format that is none":      {"logFormat: xml", []string{`config.yaml: logFormat: "xml": want json or text`}},
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
