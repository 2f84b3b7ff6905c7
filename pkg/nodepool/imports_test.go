package nodepool_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A decision must be replayable anywhere: this package may not reach the world, nor a library that does.
func TestThePackageStaysPure(t *testing.T) {
	reasons := map[string]string{
		"os": "it would depend on the machine", "net": "it would talk to somebody", "log": "pure code reports by its results",
		"log/slog": "pure code reports by its results", "math/rand": "equal input must give equal output",
		"math/rand/v2": "equal input must give equal output", "os/exec": "it would depend on the machine",
	}
	for _, name := range list(t, "{{join .Imports \"\\n\"}}") {
		if reason, unwelcome := reasons[name]; unwelcome {
			t.Errorf("imports %s: %s", name, reason)
		}
	}
	pure := []string{"pkg/nodepool", "pkg/nodepool/allocation", "pkg/nodepool/arrival", "pkg/nodepool/binpack", "pkg/nodepool/capacity", "pkg/nodepool/departure", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/nodepool/pools", "pkg/nodepool/raylabels", "pkg/raydemand", "pkg/gpuinfo"}
	for _, name := range list(t, "-deps", "{{if not .Standard}}{{.ImportPath}}{{end}}") {
		if !slices.Contains(pure, strings.TrimPrefix(name, "heliostat.dev/heliostat/")) {
			t.Errorf("depends on %s: the pure packages use the standard library and each other", name)
		}
	}
}

// list asks `go list` about this package; the last argument is the template.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	flags := append([]string{"list"}, args[:len(args)-1]...)
	out, err := exec.Command("go", append(flags, "-f", args[len(args)-1], ".")...).CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	return strings.Fields(string(out))
}
