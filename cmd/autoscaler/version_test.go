package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
)

func TestTheVersionNamesModuleRevisionAndGo(t *testing.T) {
	build := apiv1.Build{Version: "v1.2.3", Revision: "abc", Modified: true, Go: "go1.26.0", Platform: "linux/amd64"}
	var text strings.Builder
	if err := printer.WriterOf("table", printer.Look{}, printer.WriteVersions)(&text, printer.Versions{Client: build, Server: &apiv1.Build{Go: "go1.25.0"}}); err != nil {
		t.Fatal(err)
	}
	if want := "client: heliostat v1.2.3, revision abc (modified), go1.26.0\nserver: heliostat, go1.25.0\n"; text.String() != want {
		t.Errorf("got %q", text.String())
	}
	for format, want := range map[string]string{"text": "client: heliostat", "json": "{\n  \"client\": {", "yaml": "client:\n  go: " + runtime.Version()} {
		if code, out, _ := command(t, "", "autoscaler", "version", "--client", "-o", format); code != cli.ExitOK || !strings.HasPrefix(out, want) {
			t.Errorf("-o %s: exit %d: %q", format, code, out)
		}
	}
	if code, _, errOut := command(t, "", "autoscaler", "version", "-o", "xml"); code != cli.ExitBadInput || !strings.Contains(errOut, "want table, wide, json or yaml") {
		t.Errorf("exit %d: %q", code, errOut)
	}
}

func TestTheVersionIsAFlagToo(t *testing.T) {
	for _, name := range []string{"autoscaler", "kubectl-heliostat", "ray"} {
		code, out, errOut := command(t, "", name, "--version")
		if want := printer.BuildLine(api.ThisBuild()) + "\n"; code != cli.ExitOK || errOut != "" || out != want {
			t.Errorf("%s: exit %d %q: %q, want %q", name, code, errOut, out, want)
		}
	}
}

func TestTheVersionOfTheServerStandsBesideThatOfTheClient(t *testing.T) {
	newRemote(t)
	code, out, errOut := command(t, "", "autoscaler", "version")
	if code != cli.ExitOK || errOut != "" || !strings.Contains(out, "\nserver: heliostat") || strings.Count(out, runtime.Version()) != 2 {
		t.Errorf("exit %d %s: %q", code, errOut, out)
	}
}

func TestAServerThatNobodyNamedMayBeMissing(t *testing.T) {
	t.Setenv(cli.ServerVariable, "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	code, out, errOut := command(t, "", "autoscaler", "version")
	if code != cli.ExitOK || !strings.HasPrefix(out, "client: heliostat") || strings.Contains(out, "server") || !strings.HasPrefix(errOut, "no server: ") {
		t.Errorf("exit %d %q: %q", code, errOut, out)
	}
	deaf := httptest.NewServer(http.NotFoundHandler())
	deaf.Close()
	code, out, errOut = command(t, "", "autoscaler", "version", "--server", deaf.URL)
	if code != cli.ExitFailed || !strings.HasPrefix(out, "client: heliostat") || !strings.Contains(errOut, "/version") {
		t.Errorf("of a server that was named: exit %d %q: %q", code, errOut, out)
	}
}
