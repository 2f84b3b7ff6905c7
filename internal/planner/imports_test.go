package planner

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "heliostat.dev/heliostat/"

// pure lists the packages that decide without side effects, each with the packages of this module that it may depend
// on.
var pure = map[string][]string{
	"pkg/raydemand":      nil,
	"pkg/gpuinfo":        nil,
	"internal/typo":      nil,
	"internal/fieldpath": {"internal/typo"},
	"pkg/fairshare":      nil,

	"pkg/nodepool/capacity":  {"pkg/raydemand"},
	"pkg/nodepool":           {"pkg/raydemand", "pkg/gpuinfo", "pkg/nodepool/capacity", "pkg/nodepool/arrival", "pkg/nodepool/departure", "pkg/nodepool/allocation", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/nodepool/binpack", "pkg/nodepool/pools", "pkg/nodepool/raylabels"},
	"pkg/nodepool/raylabels": {"pkg/raydemand", "pkg/gpuinfo", "pkg/nodepool/allocation", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/nodepool/binpack", "pkg/nodepool/pools"},
	"pkg/nodepool/pools":     {"pkg/raydemand", "pkg/gpuinfo", "pkg/nodepool/allocation", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/nodepool/binpack"},
	"pkg/nodepool/binpack":   {"pkg/raydemand", "pkg/gpuinfo", "pkg/nodepool/allocation", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit"},
	"pkg/nodepool/podfit":    {"pkg/raydemand", "pkg/gpuinfo", "pkg/nodepool/allocation", "pkg/nodepool/nodegpu"},
	"pkg/nodepool/nodegpu":   {"pkg/gpuinfo", "pkg/nodepool/allocation"},

	"pkg/nodepool/allocation": {"pkg/gpuinfo"},
	"pkg/nodepool/departure":  nil,
	"pkg/nodepool/arrival":    nil,

	"internal/planner": planners("phrase", "model", "vector", "packing", "sharedlimits", "fleet", "cost", "readiness", "placing", "search", "limits", "reasons", "report"),

	"internal/snapshotfile": append(planners("phrase", "model"), "internal/fieldpath"),

	"internal/planner/phrase":       {"pkg/raydemand"},
	"internal/planner/model":        planners("phrase"),
	"internal/planner/vector":       planners("phrase", "model"),
	"internal/planner/packing":      planners("phrase", "model", "vector"),
	"internal/planner/sharedlimits": planners("phrase", "model", "vector"),
	"internal/planner/fleet":        planners("phrase", "model", "vector", "sharedlimits"),
	"internal/planner/cost":         planners("phrase", "model", "vector", "sharedlimits", "fleet"),
	"internal/planner/readiness":    planners("phrase", "model", "vector", "sharedlimits", "fleet", "cost"),
	"internal/planner/placing":      planners("phrase", "model", "vector", "packing", "sharedlimits", "fleet", "cost"),
	"internal/planner/search":       planners("phrase", "model", "vector", "packing", "sharedlimits", "fleet", "cost", "readiness", "placing"),
	"internal/planner/limits":       planners("phrase", "model", "vector", "packing", "sharedlimits", "fleet", "cost", "readiness", "placing", "search"),
	"internal/planner/reasons":      planners("phrase", "model", "vector", "packing", "sharedlimits", "fleet", "cost", "readiness", "placing", "search", "limits"),
	"internal/planner/report":       planners("phrase", "model", "vector", "packing", "sharedlimits", "fleet", "cost", "readiness", "placing", "search", "limits", "reasons"),
}

// direct lists, for packages that may import less than they depend on, the packages of this module that they may
// import.
var direct = map[string][]string{
	"internal/planner/packing":      {"internal/planner/vector", "pkg/raydemand"},                                                                          // only numbers
	"internal/planner/sharedlimits": {"internal/planner/model", "internal/planner/vector", "pkg/nodepool/binpack", "pkg/nodepool/podfit", "pkg/raydemand"}, // nothing about one group alone
	"internal/snapshotfile": {"internal/fieldpath", "internal/planner/model", "internal/planner/phrase", "pkg/gpuinfo", "pkg/nodepool", "pkg/nodepool/arrival", "pkg/nodepool/binpack", "pkg/nodepool/capacity", "pkg/nodepool/departure",
		"pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/nodepool/raylabels", "pkg/raydemand"},
}

// planners returns what a package of the planner may import: the vocabulary, and the planner's packages below it. Each
// package comment says what the package must not do; these lists enforce it.
func planners(below ...string) []string {
	all := []string{"pkg/raydemand", "pkg/nodepool", "pkg/nodepool/arrival", "pkg/nodepool/departure", "pkg/nodepool/allocation", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/nodepool/pools",
		"pkg/nodepool/binpack", "pkg/nodepool/raylabels", "pkg/nodepool/capacity", "pkg/gpuinfo", "pkg/fairshare", "internal/typo"}
	for _, name := range below {
		all = append(all, "internal/planner/"+name)
	}
	return all
}

// unwelcome are imports from the standard library that would let a decision depend on more than its snapshot.
var unwelcome = map[string]string{
	"net":          "a decision must not depend on the network",
	"os":           "a decision must not depend on files or the environment",
	"os/exec":      "a decision must not start programs",
	"syscall":      "a decision must not ask the operating system",
	"log":          "a decision explains itself in the plan, not in a log",
	"log/slog":     "a decision explains itself in the plan, not in a log",
	"math/rand":    "equal input must give equal bytes",
	"math/rand/v2": "equal input must give equal bytes",
	"crypto/rand":  "equal input must give equal bytes",
	"unsafe":       "nothing here is worth it",
}

func goList(t *testing.T, arguments ...string) []string {
	t.Helper()
	return strings.Fields(goListLines(t, arguments...))
}

func goListLines(t *testing.T, arguments ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, arguments...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v", arguments, err)
	}
	return string(out)
}

func TestThePurePackagesSeeNothingOfTheWorld(t *testing.T) {
	standard := map[string]bool{}
	for _, name := range goList(t, "std") {
		standard[name] = true
	}
	for name, allowed := range pure {
		t.Run(name, func(t *testing.T) {
			for _, direct := range goList(t, "-f", `{{join .Imports "\n"}}`, module+name) {
				reason, bad := unwelcome[direct]
				if strings.HasPrefix(direct, "net/") {
					reason, bad = unwelcome["net"], true
				}
				if bad {
					t.Errorf("imports %s: %s", direct, reason)
				}
			}
			may := map[string]bool{module + name: true}
			for _, a := range allowed {
				may[module+a] = true
			}
			for _, dependency := range goList(t, "-deps", module+name) {
				if !standard[dependency] && !may[dependency] && !strings.HasPrefix(dependency, "vendor/") {
					t.Errorf("depends on %s: pure packages see the standard library and the vocabulary below them only, so that "+
						"decisions can be replayed without Kubernetes and Ray", dependency)
				}
			}
		})
	}
}

func TestSomePackagesImportLessThanTheyDependOn(t *testing.T) {
	for name, allowed := range direct {
		for _, imported := range goList(t, "-f", `{{join .Imports "\n"}}`, module+name) {
			if own, ours := strings.CutPrefix(imported, module); ours && !slices.Contains(allowed, own) {
				t.Errorf("%s imports %s, want only %v", name, own, allowed)
			}
		}
	}
}

// TestTheRestOfTheProgramSeesTheFacadeAlone keeps the planner's packages free to change.
func TestTheRestOfTheProgramSeesTheFacadeAlone(t *testing.T) {
	const inside = module + "internal/planner/"
	for _, line := range strings.Split(goListLines(t, "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, module+"..."), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0]+"/", inside) || fields[0] == module+"internal/snapshotfile" {
			continue
		}
		for _, imported := range fields[1:] {
			if strings.HasPrefix(imported, inside) {
				t.Errorf("%s imports %s: outside of the planner, import internal/planner", fields[0], imported)
			}
		}
	}
}

// TestOnlyTestsImportThePackagesForTests keeps the text form of snapshots, and drawn ones, out of programs.
func TestOnlyTestsImportThePackagesForTests(t *testing.T) {
	forTests := []string{module + "internal/planner/scenario", module + "internal/planner/plannertest"}
	imports := goListLines(t, "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, module+"...")
	for line := range strings.Lines(imports) {
		fields := strings.Fields(line)
		for _, name := range forTests {
			if len(fields) > 1 && !slices.Contains(forTests, fields[0]) && slices.Contains(fields[1:], name) {
				t.Errorf("%s imports %s, which is for tests alone: programs read snapshots as JSON", fields[0], name)
			}
		}
	}
}

func TestThePurePackagesNeverAskForTheTime(t *testing.T) {
	for name := range pure {
		directory := goList(t, "-f", "{{.Dir}}", module+name)[0]
		for _, file := range goList(t, "-f", `{{join .GoFiles "\n"}}`, module+name) {
			source, err := os.ReadFile(filepath.Join(directory, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range []string{"time.Now(", "time.Since(", "time.Until(", "time.Sleep(", "time.After("} {
				if bytes.Contains(source, []byte(call)) {
					t.Errorf("%s/%s calls %s): the snapshot carries the time, so that a decision can be replayed", name, file, call)
				}
			}
		}
	}
}
