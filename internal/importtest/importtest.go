// Package importtest checks what a package imports. A package comment says what the package must not do, and a test
// with this package enforces it and fails with the reason. Only tests may import it.
package importtest

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Module is the path of this module, with a slash at its end.
const Module = "heliostat.dev/heliostat/"

// Imports fails the test if the package in the current folder imports one of the packages directly. The keys are import
// paths, without Module for packages of this module. A path that ends with a slash means all packages below it. The
// values are the reasons.
func Imports(t *testing.T, unwelcome map[string]string) {
	t.Helper()
	check(t, "imports", list(t, "-f", `{{join .Imports "\n"}}`, "."), unwelcome)
}

// Dependencies fails the test if the package in the current folder imports one of the packages, directly or indirectly.
func Dependencies(t *testing.T, unwelcome map[string]string) {
	t.Helper()
	check(t, "depends on", list(t, "-deps", "."), unwelcome)
}

// Only fails the test if the package in the current folder directly imports a package of this module that is not in the
// list. The list has import paths without Module.
func Only(t *testing.T, allowed ...string) {
	t.Helper()
	for _, name := range list(t, "-f", `{{join .Imports "\n"}}`, ".") {
		if own, ours := strings.CutPrefix(name, Module); ours && !slices.Contains(allowed, own) {
			t.Errorf("imports %s: of this module, want only %s", own, strings.Join(allowed, ", "))
		}
	}
}

func check(t *testing.T, verb string, names []string, unwelcome map[string]string) {
	t.Helper()
	for _, name := range names {
		own := strings.TrimPrefix(name, Module)
		for _, path := range slices.Sorted(maps.Keys(unwelcome)) {
			if own == path || strings.HasSuffix(path, "/") && strings.HasPrefix(own, path) {
				t.Errorf("%s %s: %s", verb, own, unwelcome[path])
			}
		}
	}
}

func list(t *testing.T, arguments ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, arguments...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", arguments, err)
	}
	return strings.Fields(string(out))
}
