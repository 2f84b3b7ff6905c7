// Package heliostat has one test: which packages import which.
package heliostat

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Names of packages are without the module's path and separated by spaces. "x/..." is x and all packages below it.
const (
	// values decide and compute. They see no clock, network or file, so that a decision can be replayed anywhere.
	values = "internal/fieldpath pkg/gpuinfo pkg/nodepool/... pkg/raydemand"

	deciders = values + " internal/planner/... internal/snapshotfile internal/ledger"

	features = "internal/addon/capacity internal/addon/consolidation internal/addon/costs internal/addon/departures " +
		"internal/addon/giveback " +
		"internal/addon/nodeguard internal/addon/provisioning internal/addon/reclaim"
	loop = "internal/controller/... internal/addon/..."
	kube = "pkg/nodepool/kube/..."
)

// floors are the packages of this module from the bottom to the top, with the packages that they see: those of the same
// row, and those of the rows that they name. The row with the longest name counts. Adapters do not see each other; they
// meet in cmd/autoscaler/engine. Nobody sees what is for tests.
var floors = []struct{ packages, see string }{
	{"api docs examples/...", ""},
	{"api/v1alpha1", ""},
	{"api/proto/...", ""},

	{"internal/fieldpath", ""},
	{"pkg/gpuinfo", ""},
	{"pkg/raydemand", ""},
	{"pkg/nodepool/...", values},

	{"pkg/gpuinfo/nvml", "pkg/gpuinfo"},
	{"pkg/raydemand/gcs", "api/proto/... pkg/raydemand"},
	{kube, values + " api/v1alpha1"},

	{"internal/planner/...", values},
	{"internal/planner", values + " internal/planner/..."},
	{"internal/snapshotfile", values + " internal/planner/..."},
	{"internal/snapshotfile/manifests", values + " internal/planner internal/snapshotfile " + kube},

	{"internal/ledger/...", values},
	{loop, values + " internal/api/apiv1 internal/ledger/... internal/planner internal/snapshotfile"},

	{"internal/access", ""},
	{"internal/api/apiv1", values + " internal/planner"},
	{"internal/api", values + " api internal/access internal/api/apiv1 internal/ledger/... internal/planner " +
		"internal/snapshotfile " + loop},

	{"internal/doctor", values + " " + kube},
	{"internal/gpuagent", values},
	{"internal/telemetry", values + " internal/ledger/... internal/planner internal/api/apiv1 " + loop},
	{"internal/webui", ""},

	{"internal/cli", values + " internal/access internal/api/apiv1 " + kube},
	{"internal/cli/printer", values + " internal/cli internal/doctor internal/api/apiv1 " +
		"internal/ledger/... internal/planner"},

	{"cmd/autoscaler/engine", values + " internal/cli internal/planner " +
		"internal/api/apiv1 internal/api internal/ledger/... internal/access " +
		"internal/telemetry internal/webui pkg/raydemand/gcs " +
		loop + " " + kube},
	{"cmd/autoscaler", values + " api/v1alpha1 cmd/autoscaler/engine internal/cli internal/cli/printer " +
		"internal/doctor internal/gpuagent " +
		"internal/api/apiv1 internal/api internal/planner internal/snapshotfile " +
		"internal/snapshotfile/manifests internal/telemetry pkg/gpuinfo/nvml " + kube},

	// What is for tests. A judge shares no code with what it judges.
	{"test/simray", "api/proto/... pkg/raydemand"}, // a client that shares code with it cannot find its mistakes
	{"test/simray/certs", ""},
	{"test/simray/conformance", "api/proto/... test/simray test/simray/certs pkg/raydemand pkg/raydemand/gcs"},
	{"test/chaos/verdict", ""},
	{"test/shards/terms", ""},
	{"test/devcluster/nodeagent/loopback", ""},
	{"test/devcluster/nodeagent/objects", ""},
	{"test/devcluster/nodeagent/probe", ""},
	{"test/devcluster/nodeagent/rewrite", ""},
	{"test/devcluster/nodeagent/env test/devcluster/nodeagent/sandbox", ""},
	{"test/devcluster/nodeagent/volume", "test/devcluster/nodeagent/env test/devcluster/nodeagent/sandbox"},
}

// rules are about what the floors leave open. Packages of the standard library and of this module count where they are
// imported directly: fmt itself depends on os. Others count wherever they are below; "others" are all of them.
var rules = []struct{ of, except, never, because string }{
	{deciders + " internal/doctor", kube + "",
		"context net/... os/... syscall log/... math/rand/... crypto/rand unsafe",
		"equal input gives equal output, anywhere"},
	{deciders + " " + loop, kube + " pkg/nodepool/capacity/policytext internal/controller",
		"others", "adapters know Kubernetes and Ray"},
	{loop, "internal/controller internal/addon/...",
		"context log/... math/rand/... net/... os/...", "the loop makes the calls and logs what they return"},
	{"internal/addon/... internal/controller/...", "", features, "a feature is deleted with its folder and its row"},
	{loop, "", "k8s.io/... sigs.k8s.io/... google.golang.org/... net/... os/...",
		"the loop acts through interfaces of its own"},

	{"internal/planner/...", "internal/planner", "internal/planner/why", "nothing that decides depends on sentences"},
	{"internal/snapshotfile", "", "internal/planner", "what is read does not depend on how it is planned"},

	{kube, "pkg/nodepool/kube pkg/nodepool/kube/kueue pkg/nodepool/kube/requests", "sigs.k8s.io/controller-runtime/...",
		"the manager's caches wait for their objects; these reads may be forbidden"},
	{kube, "", "sigs.k8s.io/kueue/... k8s.io/autoscaler/...",
		"two API versions are read, and these modules require their own Kubernetes"},
	{"pkg/nodepool/kube/decode", "", "k8s.io/client-go/... net/http os/... log/... math/rand/...",
		"an object is given, and equal objects give equal results"},

	{"internal/api/apiv1", "", "github.com/gin-gonic/...", "the framework belongs to the server"},
	{"internal/api internal/api/apiv1", "", "k8s.io/...",
		"the server calls Kubernetes through interfaces of its own"},

	{"internal/access", "", "k8s.io/...", "its callers know Kubernetes"},
	{"internal/gpuagent", "", "others",
		"its callers know Kubernetes"},
	{"test/simray/... pkg/raydemand/...", "", "k8s.io/...", "a Ray head knows nothing of Kubernetes"},
	{"internal/telemetry", "", "k8s.io/client-go/...", "telemetry reports; it observes nothing itself"},
	{"internal/cli/printer", "", "net/http", "package cli finds and calls servers"},
	{"cmd/... internal/... pkg/...", "", "testing/...", "a program has no test flags"},

	{"test/chaos/verdict test/shards/terms", "", "others", "a judge knows nothing of how facts are read"},
	{"test/shards/fleet", "", "test/shards/terms", "the fleet is there for any number of writers"},
	{"test/devcluster/nodeagent/loopback test/devcluster/nodeagent/sandbox test/devcluster/nodeagent/rewrite", "",
		"k8s.io/...", "it knows no Kubernetes objects"},
	{"test/devcluster/nodeagent/env test/devcluster/nodeagent/podruntime test/devcluster/nodeagent/volume", "",
		"k8s.io/client-go/...", "their Source reads objects, so that tests need no API server"},
	{"test/devcluster/nodeagent/probe", "", "k8s.io/client-go/... os/exec",
		"the container runs the commands of its probes"},
}

func TestPackagesImportOnlyWhatTheyMay(t *testing.T) {
	packages := list(t)
	t.Run("what decides does not ask for the time", func(t *testing.T) { timeIsGiven(t, packages) })
	for _, floor := range floors {
		for pattern := range strings.FieldsSeq(floor.packages) {
			exists := func(name string) bool { return matches(pattern, name) }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(packages)), exists) {
				t.Errorf("floors has %s, which is no package", pattern)
			}
		}
	}
	for name := range packages {
		row := rowOf(name)
		if row < 0 && !strings.HasPrefix(name, "test/") {
			t.Errorf("%s has no row in floors", name)
		}
		for _, imported := range packages[name].Imports {
			if _, own := packages[imported]; own && row >= 0 && !sees(row, imported) {
				t.Errorf("%s imports %s: it sees only %s", name, imported, floors[row].see)
			}
		}
		for _, r := range rules {
			if matches(r.of, name) && !matches(r.except, name) {
				for _, imported := range packages.counted(name) {
					if matches(r.never, imported) {
						t.Errorf("%s imports %s: %s", name, imported, r.because)
					}
				}
			}
		}
	}
}

func timeIsGiven(t *testing.T, packages tree) {
	for name, p := range packages {
		if !matches(deciders+" internal/doctor "+loop, name) ||
			matches(kube, name) {
			continue
		}
		for _, file := range p.GoFiles {
			source, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range clocks {
				if bytes.Contains(source, []byte(call)) {
					t.Errorf("%s/%s calls %s): the time is given, so that a decision can be replayed", name, file, call)
				}
			}
		}
	}
}

// clocks are the calls that ask for the time or wait for it.
var clocks = []string{"time.Now(", "time.Since(", "time.Until(", "time.Sleep(", "time.After(", "time.NewTimer(",
	"time.NewTicker(", "time.Tick("}

// rowOf returns the index of the row of floors for a package, or -1.
func rowOf(name string) (row int) {
	row, longest := -1, 0
	for i, floor := range floors {
		for pattern := range strings.FieldsSeq(floor.packages) {
			if matches(pattern, name) && len(pattern) > longest {
				row, longest = i, len(pattern)
			}
		}
	}
	return row
}

// sees reports whether packages of a row may import a package.
func sees(row int, name string) bool {
	if of := rowOf(name); of != row {
		return slices.ContainsFunc(strings.Fields(floors[row].see), func(pattern string) bool {
			return pattern == name ||
				of >= 0 && slices.Contains(strings.Fields(floors[of].packages), pattern) && matches(pattern, name)
		})
	}
	return true
}

// matches reports whether a package is among those that the patterns name.
func matches(patterns, name string) bool {
	for pattern := range strings.FieldsSeq(patterns) {
		folder, below := strings.CutSuffix(pattern, "/...")
		if name == folder || below && strings.HasPrefix(name, folder+"/") || pattern == "others" && isOther(name) {
			return true
		}
	}
	return false
}

// isOther reports whether a package belongs to another module. The names of this module's packages have no dot.
func isOther(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return strings.Contains(first, ".")
}

const root = "heliostat.dev/heliostat/"

type goPackage struct {
	ImportPath, Dir        string
	GoFiles, Imports, Deps []string
}

// tree has the packages of the modules in this tree by their names.
type tree map[string]goPackage

// counted returns the packages that a package imports directly, and those of other modules below it.
func (all tree) counted(name string) []string {
	names := slices.Clone(all[name].Imports)
	for _, below := range all[name].Deps {
		if isOther(below) && !slices.Contains(names, below) {
			names = append(names, below)
		}
	}
	return names
}

// list asks the go command for the packages of the main module, and reads the imports of those in the test modules
// itself, so that tests of the main module need no module that it does not require.
func list(t *testing.T) tree {
	t.Helper()
	all := tree{}
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			t.Fatalf("listing packages: %v", err)
		}
		if name, own := strings.CutPrefix(p.ImportPath, root); own {
			all[name] = p
		}
	}
	err = filepath.WalkDir("test", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		p := all[filepath.Dir(path)]
		p.Dir = filepath.Dir(path)
		for _, spec := range file.Imports {
			p.Imports = append(p.Imports, strings.Trim(spec.Path.Value, `"`))
		}
		all[p.Dir] = p
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, names := range [][]string{p.Imports, p.Deps} {
			for i := range names {
				names[i] = strings.TrimPrefix(names[i], root)
			}
		}
		// A cached result of this test counts only as long as the folders that it has read are the same.
		if _, err := os.ReadDir(p.Dir); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
