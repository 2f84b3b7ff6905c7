package docs

import (
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestRunningListsAllAnnotations(t *testing.T) {
	want := slices.Clone(decode.KnownAnnotations)
	slices.Sort(want)
	if diff := cmp.Diff(want, firstColumn(between(t, "docs/running.md", "## Annotations on a RayCluster\n", "\n## "))); diff != "" {
		t.Errorf("annotations (-source +docs):\n%s", diff)
	}
}

func TestBadGPUsListsAllSigns(t *testing.T) {
	var want []string
	for _, row := range sharing.BadGPUSigns {
		sign := row.Name
		if row.Bad != "" {
			sign += "=" + row.Bad
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %v | %s |", sign, row.Kind, row.Severity, row.Source))
	}
	table := between(t, "docs/reference/bad-gpus.md", "| sign |", "\n\n")
	if diff := cmp.Diff(want, strings.Split(table, "\n")[2:]); diff != "" {
		t.Errorf("signs (-source +docs):\n%s", diff)
	}
}

func TestThePageOfCostsHasAllCauses(t *testing.T) {
	page := read(t, "docs/reference/costs.md")
	for _, cause := range ledger.Causes() {
		if !strings.Contains(page, "\n| `"+string(cause)+"` | ") {
			t.Errorf("there is no row for the cause %s", cause)
		}
	}
}

func TestDeparturesListsAllSignsAndTheirTaints(t *testing.T) {
	table := between(t, "docs/reference/departures.md", "| sign |", "\n\n")
	want := slices.Sorted(maps.Values(constantsOf(t, "pkg/nodepool/departure/notice.go", "Sign")))
	if diff := cmp.Diff(want, firstColumn(table)); len(want) == 0 || diff != "" {
		t.Errorf("signs (-source +docs):\n%s", diff)
	}
	for _, taint := range departure.Taints {
		row := slices.IndexFunc(strings.Split(table, "\n"), func(line string) bool {
			certain := "| yes |"
			if !departure.OfTaint(taint.Key, "").Certain {
				certain = "| warning |"
			}
			return strings.Contains(line, "`"+taint.Key+"`") && strings.HasPrefix(line, "| `"+string(taint.Sign)+"`") &&
				strings.Contains(line, certain)
		})
		if row < 0 {
			t.Errorf("no row of sign %s names taint %s as it is", taint.Sign, taint.Key)
		}
	}
}

// The doctor reports most problems of nodes; the page of GPUs has the others.
func TestEveryProblemOfANodeIsDescribed(t *testing.T) {
	text := read(t, "docs/reference/doctor.md") + between(t, "docs/reference/gpus.md", "## Problems", "\n## ")
	for _, code := range constantsOf(t, "pkg/nodepool/sharing/problem.go", "ProblemCode") {
		if !strings.Contains(text, "`"+code+"`") {
			t.Errorf("no page describes %s", code)
		}
	}
}

// TestIntervalsAreThoseOfTheLoop compares the table of intervals in docs/operations.md with what the loop computes from
// the default flags.
func TestIntervalsAreThoseOfTheLoop(t *testing.T) {
	settings := controller.Config{
		FastPoll: 100 * time.Millisecond, RestPoll: 200 * time.Millisecond, ReadsPerSecond: 4000, CyclesPerSecond: 400,
		Jitter: func() float64 { return 0.5 },
	}
	row := regexp.MustCompile(`(?m)^\| ([\d,]+) \| ([\d.]+ s) \| ([\d.]+ s) \|$`)
	rows := row.FindAllStringSubmatch(between(t, "docs/operations.md", "\n## Intervals\n", "\n## "), -1)
	if len(rows) < 5 {
		t.Fatalf("only %d rows were found", len(rows))
	}
	for _, cells := range rows {
		clusters, err := strconv.Atoi(strings.ReplaceAll(cells[1], ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []time.Duration{settings.IdleInterval(clusters), settings.IdleStands(clusters)} {
			got, err := time.ParseDuration(strings.ReplaceAll(cells[2+i], " ", ""))
			if err != nil || got != want {
				t.Errorf("%s RayClusters: the table says %s, the loop %v", cells[1], cells[2+i], want)
			}
		}
	}
}

// TestTheTableOfPathsIsThatOfTheSpecification compares docs/reference/rest.md with api/openapi.yaml.
func TestTheTableOfPathsIsThatOfTheSpecification(t *testing.T) {
	const cluster = "/v1/namespaces/{namespace}/rayclusters/{name}"
	table := read(t, "docs/reference/rest.md")
	paths := regexp.MustCompile(`(?m)^  (/\S*):$`).FindAllStringSubmatch(read(t, "api/openapi.yaml"), -1)
	if len(paths) < 20 {
		t.Fatalf("%d paths in the specification", len(paths))
	}
	for _, path := range paths {
		written := path[1]
		if rest, below := strings.CutPrefix(written, cluster+"/"); below {
			written = "…/" + rest
			if strings.Contains(table, "…/{name}/"+rest) {
				continue
			}
		}
		if !regexp.MustCompile("`[^`]*" + regexp.QuoteMeta(written) + "[`?]").MatchString(table) {
			t.Errorf("docs/reference/rest.md has no %s", path[1])
		}
	}
}

const reasons = "docs/reference/reasons.md"

// For each code that users see when a RayCluster is not scaled, the page must say what to do.
// TestTheTableOfErrorsHasAllKindsOfProblems compares docs/reference/rest.md with the kinds of the server.
func TestTheTableOfErrorsHasAllKindsOfProblems(t *testing.T) {
	table := read(t, "docs/reference/rest.md")
	kinds := regexp.MustCompile(`problemKind\{\s*"([a-z-]+)"`).FindAllStringSubmatch(read(t, "internal/api/problem.go"), -1)
	if len(kinds) < 20 {
		t.Fatalf("only %d kinds are found", len(kinds))
	}
	for _, kind := range kinds {
		if !strings.Contains(table, " | `"+kind[1]+"` | ") {
			t.Errorf("docs/reference/rest.md has no %s", kind[1])
		}
	}
}

func TestReasonsSaysWhatToDoAboutEveryCode(t *testing.T) {
	for _, title := range []string{
		"Why a RayCluster is not managed", "Why demand is not served", "Why a group has the size it has", "Why a request is in its state",
	} {
		for line := range strings.Lines(between(t, reasons, "\n## "+title+"\n", "\n## ")) {
			if !strings.HasPrefix(line, "| `") {
				continue
			}
			if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | "); len(cells) != 3 || strings.TrimSpace(cells[2]) == "" {
				t.Errorf("%s: the row has no meaning or nothing to do: %s", title, line)
			}
		}
	}
}

func TestReasonsNamesListedEvents(t *testing.T) {
	var known []string
	for _, all := range listed(t) {
		known = append(known, all...)
	}
	for _, reason := range regexp.MustCompile("reason=(\\w+)|Event `(\\w+)`").FindAllStringSubmatch(read(t, reasons), -1) {
		if !slices.Contains(known, reason[1]+reason[2]) {
			t.Errorf("no Event has the reason %s", reason[1]+reason[2])
		}
	}
}

func TestGPUsListsXIDsWithTheirEffect(t *testing.T) {
	got := map[bool][]uint64{}
	table := between(t, "docs/reference/gpus.md", "| XIDs | are |", "\n\n")
	for _, row := range regexp.MustCompile(`(?m)^\| ([\d, ]+) \| (\w+)`).FindAllStringSubmatch(table, -1) {
		for number := range strings.SplitSeq(row[1], ", ") {
			n, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			got[row[2] == "fatal"] = append(got[row[2] == "fatal"], n)
		}
	}
	slices.Sort(got[false])
	want := map[bool][]uint64{}
	for number := range uint64(1000) {
		if xid, judged := gpuinfo.XIDOf(number); judged {
			want[xid.Fatal] = append(want[xid.Fatal], number)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("XIDs, by whether they are fatal (-source +docs):\n%s", diff)
	}
}

// metricName matches the Prometheus name of an instrument.
var metricName = regexp.MustCompile(`\b(?:heliostat|autoscaler)_[a-z_]+\b`)

// instruments returns the names of all instruments.
func instruments(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, file := range goFiles(t, "internal/telemetry/metricnames.go", false) {
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok {
				if text, err := strconv.Unquote(literal.Value); err == nil && metricName.FindString(text) == text && text != "" {
					found[text] = true
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}

func TestTelemetryListsAllInstruments(t *testing.T) {
	listed := map[string]bool{}
	for _, name := range metricName.FindAllString(read(t, "docs/reference/telemetry.md"), -1) {
		listed[name] = true
	}
	if diff := cmp.Diff(instruments(t), slices.Sorted(maps.Keys(listed))); diff != "" {
		t.Errorf("instruments (-source +docs):\n%s", diff)
	}
}

func TestPagesNameExistingInstruments(t *testing.T) {
	known := instruments(t)
	for _, path := range pages(t) {
		for _, name := range metricName.FindAllString(read(t, path), -1) {
			if strings.HasPrefix(name, "heliostat_") && !slices.Contains(known, strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")) {
				t.Errorf("%s names %s, which is not an instrument", path, name)
			}
		}
	}
}
