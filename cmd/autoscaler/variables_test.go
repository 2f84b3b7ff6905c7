package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/cmd/autoscaler/engine"
	"heliostat.dev/heliostat/internal/cli"
)

func TestVariablesThatSetNothingAreTold(t *testing.T) {
	known := cli.Variables(engine.Serve().Flags())
	for variable, want := range map[string]struct{ refused, told string }{
		"HELIOSTAT_LOG_LEVLE=debug": {"HELIOSTAT_LOG_LEVLE: no flag has this name: want HELIOSTAT_LOG_LEVEL", "HELIOSTAT_LOG_LEVEL"},
		"HELIOSTAT_namespaces=ml":   {"HELIOSTAT_namespaces: no flag has this name: want HELIOSTAT_NAMESPACES", "HELIOSTAT_NAMESPACES"},
		"HELIOSTAT_Mode=shadow":     {"HELIOSTAT_Mode: no flag has this name: want HELIOSTAT_MODE", "HELIOSTAT_MODE"},
		"HELIOSTAT_MODES=shadow":    {"", "want HELIOSTAT_MODE"},
		"HELIOSTAT_HOME=/tmp":       {"", "an environment variable has no effect, because no flag has its name"},
		"HELIOSTAT_CONFIG_HASH=1":   {"", "want HELIOSTAT_CONFIG"},
		"HELIOSTAT_LOG_LEVLE=":      {},
		"HELIOSTAT_LOG_LEVEL=debug": {},
		"HELIOSTAT_CONFIG=/etc/x":   {},
		"HELIOSTAT_SERVER=http://x": {},
		"HELIOSTAT_CACHE=/var/tmp":  {},
		"HOME=/root":                {},
		// Kubernetes sets these variables in pods for the Services heliostat, heliostat-metrics and heliostat-mode.
		"HELIOSTAT_SERVICE_HOST=10.0.0.1":                     {},
		"HELIOSTAT_SERVICE_PORT=8090":                         {},
		"HELIOSTAT_SERVICE_PORT_HTTPS_API=8090":               {},
		"HELIOSTAT_PORT=tcp://10.0.0.1:8090":                  {},
		"HELIOSTAT_PORT_8090_TCP=tcp://10.0.0.1:8090":         {},
		"HELIOSTAT_PORT_8090_TCP_PROTO=tcp":                   {},
		"HELIOSTAT_PORT_8090_TCP_PORT=8090":                   {},
		"HELIOSTAT_PORT_8090_UDP_ADDR=10.0.0.1":               {},
		"HELIOSTAT_METRICS_SERVICE_HOST=10.0.0.1":             {},
		"HELIOSTAT_METRICS_PORT_9090_TCP=tcp://10.0.0.1:9090": {},
		"HELIOSTAT_MODE_PORT=tcp://10.0.0.1:9090":             {},
	} {
		refused := ""
		if err := cli.RefuseMisspelled(known, []string{variable}); err != nil {
			refused = err.Error()
		}
		if diff := cmp.Diff(want.refused, refused); diff != "" {
			t.Errorf("%s is refused (-want +got):\n%s", variable, diff)
		}
		var log bytes.Buffer
		cli.LogUnknownVariables(known, []string{variable}, slog.New(slog.NewTextHandler(&log, nil)))
		if told := log.String(); (want.told == "") != (told == "") || !strings.Contains(told, want.told) {
			t.Errorf("%s is told by %q, want %q", variable, told, want.told)
		}
	}
}

// TestVariablesOfOneFormDoNotStopTheOther checks that both forms can run in the same environment.
func TestVariablesOfOneFormDoNotStopTheOther(t *testing.T) {
	fleet, sidecar := engine.Serve().Flags(), engine.Sidecar().Flags()
	for known, others := range map[*pflag.FlagSet]*pflag.FlagSet{fleet: sidecar, sidecar: fleet} {
		for _, name := range cli.Variables(others) {
			if err := cli.RefuseMisspelled(cli.Variables(known), []string{cli.EnvPrefix + name + "=1"}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestASlipInAVariableStopsTheProgram(t *testing.T) {
	outsidePods(t)
	t.Setenv("HELIOSTAT_LEADER_ELCET", "true")
	if code, _, errOut := command(t, "", "autoscaler", "serve"); code != cli.ExitBadInput || !strings.Contains(errOut, "want HELIOSTAT_LEADER_ELECT") {
		t.Errorf("exit %d, %q", code, errOut)
	}
	t.Setenv("HELIOSTAT_LEADER_ELCET", "")
	t.Setenv("HELIOSTAT_HOME", "/tmp")
	if code, _, errOut := command(t, "", "autoscaler", "serve"); code != cli.ExitBadInput || !strings.Contains(errOut, `"variable":"HELIOSTAT_HOME"`) || !strings.Contains(errOut, "--kubeconfig") {
		t.Errorf("exit %d, %q, want it to get as far as looking for the API server", code, errOut)
	}
}
