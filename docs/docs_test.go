// Package docs contains the documentation of Heliostat. Its tests compare the pages with the source: codes, names of
// tests, links, facts.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = ".."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goFiles parses the tests or the other files of a directory, or the single file at path.
func goFiles(t *testing.T, path string, tests bool) []*ast.File {
	t.Helper()
	names := []string{filepath.Join(root, path)}
	if !strings.HasSuffix(path, ".go") {
		all, err := filepath.Glob(filepath.Join(root, path, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		names = slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, "_test.go") != tests })
	}
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// constants returns the values of the untyped string constants, by name.
func constants(t *testing.T, path string) map[string]string { return constantsOf(t, path, "") }

// constantsOf returns the values of the string constants of a type, by name. The type "" means untyped.
func constantsOf(t *testing.T, path, typed string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range goFiles(t, path, false) {
		for _, declared := range file.Decls {
			group, ok := declared.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				kind, _ := value.Type.(*ast.Ident)
				if (kind == nil) != (typed == "") || kind != nil && kind.Name != typed {
					continue
				}
				for i := range value.Values {
					if literal, ok := value.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
						found[value.Names[i].Name], _ = strconv.Unquote(literal.Value)
					}
				}
			}
		}
	}
	return found
}

// codes returns the values of the constants whose names match, sorted.
func codes(t *testing.T, path, names string) []string {
	t.Helper()
	all := constants(t, path)
	maps.DeleteFunc(all, func(name, _ string) bool { return !regexp.MustCompile(names).MatchString(name) })
	return slices.Sorted(maps.Values(all))
}

// unusedCodes returns the causes of unused GPUs: those of their own, and those of pods that are busy without work.
func unusedCodes(t *testing.T) []string {
	t.Helper()
	return slices.Sorted(slices.Values(slices.Concat(
		codes(t, "internal/planner/model/codes.go", "^(Unused|Code(Uncounted|HoldsObjects|Reserved)$)"),
		codes(t, "internal/planner/model/question.go", "^Pod(Arguments|Unexplained)$"),
	)))
}

// findingPackages are the packages that report findings.
var findingPackages = []string{
	"pkg/raydemand/gcs", "pkg/nodepool", "pkg/nodepool/landing", "pkg/nodepool/kube", "pkg/nodepool/kube/dra", "pkg/nodepool/kube/decode",
	"pkg/nodepool/kube/requests", "pkg/nodepool/kube/kueue", "pkg/nodepool/capacity", "pkg/nodepool/kube/nodes",
	"internal/planner/model", "internal/controller",
	"internal/addon/capacity", "internal/addon/consolidation", "internal/addon/nodeguard",
	"internal/addon/provisioning", "internal/addon/reclaim", "internal/controller/observe",
}

// findingCodes returns the codes of all findings: exported constants of several words joined by hyphens. Constants that
// begin with Sync say why a number of GPUs is not written, those with From where the limit of a pool comes from, and
// StatusConfigMap is the name of an object.
func findingCodes(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, path := range findingPackages {
		for name, value := range constants(t, path) {
			if ast.IsExported(name) && name != "StatusConfigMap" && !strings.HasPrefix(name, "Sync") && !strings.HasPrefix(name, "From") && regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(value) {
				found[value] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// doctorCodes returns the codes that docs/reference/doctor.md describes.
func doctorCodes(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, row := range rowID.FindAllStringSubmatch(read(t, "docs/reference/doctor.md"), -1) {
		found = append(found, row[1])
	}
	return found
}

// findingsOfPlans returns the codes of the findings that the doctor does not report.
func findingsOfPlans(t *testing.T) []string {
	t.Helper()
	doctor := doctorCodes(t)
	return slices.DeleteFunc(findingCodes(t), func(code string) bool { return slices.Contains(doctor, code) })
}

// listed returns the codes in the first column of the table below each heading of reasons.md, sorted.
func listed(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for section := range strings.SplitSeq(read(t, "docs/reference/reasons.md"), "\n## ") {
		title, _, _ := strings.Cut(section, "\n")
		if all := firstColumn(section); len(all) > 0 {
			found[title] = all
		}
	}
	return found
}

// firstColumn returns the codes in the first column of the tables of a text, sorted.
func firstColumn(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if row, ok := strings.CutPrefix(line, "| `"); ok {
			cell, _, _ := strings.Cut("`"+row, " |")
			for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				found = append(found, code[1])
			}
		}
	}
	slices.Sort(found)
	return found
}

// between returns the part of a page between two texts.
func between(t *testing.T, page, from, until string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, page), from)
	text, _, ends := strings.Cut(text, until)
	if !found || !ends {
		t.Fatalf("%s has no %q before %q", page, from, until)
	}
	return text
}

// changes returns the codes of all actions with all results.
func changes(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, kind := range codes(t, "internal/addon/decision.go", "^Action") {
		for _, result := range codes(t, "internal/addon/decision.go", "^Result") {
			all = append(all, kind+"-"+result)
		}
	}
	return all
}

func TestReasonsListsAllCodes(t *testing.T) {
	got := listed(t)
	want := map[string][]string{
		"Why a group has the size it has": codes(t, "internal/planner/model/codes.go", "^Code"),
		"Why GPUs are unused":             unusedCodes(t),
		"What becomes of warm capacity":   codes(t, "internal/planner/model/codes.go", "^Warm"),
		"What becomes of warm nodes":      codes(t, "pkg/nodepool/capacity/nodes.go", "^Nodes"),
		"Why a pod should go":             codes(t, "internal/planner/model/codes.go", "^Stop"),
		"Why a pod was removed":           codes(t, "internal/controller/scaledown/name.go", "^removed"),
		"Why demand is not served":        codes(t, "internal/planner/model/plan.go", "."),
		"Why a RayCluster is not managed": codes(t, "internal/addon/mode.go", "."),
		"Events on the RayCluster":        codes(t, "internal/addon/reason.go", ""),
		"Why num-gpus is not written":     codes(t, "pkg/nodepool/numgpussync.go", "^Sync"),
		"Why a request is in its state":   codes(t, "pkg/raydemand/owned.go", "^Code"),
		"Findings":                        findingsOfPlans(t),
		"What was changed":                got["What was changed"], // see below
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes (-source +docs):\n%s", diff)
	}
	for _, code := range got["What was changed"] {
		if !slices.Contains(changes(t), code) {
			t.Errorf("no action has the code %s", code)
		}
	}
}

// The tests cannot find a code that is a literal, and its spelling could vary.
func TestCodesOfFindingsAreConstants(t *testing.T) {
	for _, path := range findingPackages {
		for _, file := range goFiles(t, path, false) {
			ast.Inspect(file, func(node ast.Node) bool {
				pair, ok := node.(*ast.KeyValueExpr)
				if !ok {
					return true
				}
				key, _ := pair.Key.(*ast.Ident)
				if literal, ok := pair.Value.(*ast.BasicLit); ok && key != nil && key.Name == "Code" {
					t.Errorf("%s: the code %s is not a constant", path, literal.Value)
				}
				return true
			})
		}
	}
}

// The design note names the tests of each safety rule.
func TestEverySafetyRuleNamesExistingTests(t *testing.T) {
	exist := map[string]bool{}
	for _, path := range []string{"internal/controller", "internal/addon", "internal/addon/nodeguard", "internal/controller/scaledown", "internal/controller/observe", "pkg/nodepool", "pkg/nodepool/landing", "pkg/nodepool/kube", "pkg/nodepool/kube/decode",
		"pkg/nodepool/kube/requests", "pkg/nodepool/kube/kueue", "pkg/nodepool/kube/nodes"} {
		for _, file := range goFiles(t, path, true) {
			for _, declared := range file.Decls {
				if function, ok := declared.(*ast.FuncDecl); ok {
					exist[function.Name.Name] = true
				}
			}
		}
	}
	rules := between(t, "docs/design/0001-the-loop.md", "## Rules of safety", "\n### ")
	named := map[string]int{}
	for line := range strings.Lines(rules) {
		rule, _, isRow := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !isRow || !strings.HasPrefix(line, "| ") || rule == "what must never happen" {
			continue
		}
		named[rule] = 0
		for _, name := range regexp.MustCompile("`(Test[^`]+)`").FindAllStringSubmatch(line, -1) {
			named[rule]++
			if !exist[name[1]] {
				t.Errorf("%s: there is no %s", rule, name[1])
			}
		}
	}
	for rule, tests := range named {
		if tests == 0 {
			t.Errorf("no test is named for: %s", rule)
		}
	}
	if len(named) < 9 {
		t.Errorf("only %d rules were found", len(named))
	}
}
