package planner

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const expressionWant = "want v, !v, in(a,b) or !in(a,b), each value of at most 63 letters, digits, '-', '_' and '.', a letter or a digit at both ends; "

func TestABadSnapshotIsRefusedWithFileFieldValueAndWhatWouldBeRight(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"truncated":                       {`{"groups": [`, "s.json: line 1, column 12: unexpected end of JSON input: want a JSON object"},
		"not an object":                   {`[]`, `s.json: not a JSON object: want a snapshot {"groups": […], "nodes": […], …}`},
		"no groups":                       {`{}`, "s.json: groups: missing: want a list of worker groups, or rayCluster: {…} in its place"},
		"groups and rayCluster":           {`{"groups": [], "rayCluster": {}}`, "s.json: rayCluster: {}: want either groups or rayCluster, not both"},
		"groups is an object":             {`{"groups": {}}`, "s.json: groups: {}: want a list […]"},
		"group without a name":            {`{"groups": [{}]}`, "s.json: groups[0].name: missing: want the worker group's name"},
		"duplicate group":                 {`{"groups": [{"name": "a"}, {"name": "a"}]}`, `s.json: groups[1].name: "a": want a unique name: groups[0] has this one`},
		"negative minimum":                {`{"groups": [{"name": "a", "minReplicas": -1}]}`, "s.json: groups[0].minReplicas: -1: want a whole number from 0 to 2147483647"},
		"fractional maximum":              {`{"groups": [{"name": "a", "maxReplicas": 1.5}]}`, "s.json: groups[0].maxReplicas: 1.5: want a whole number from 0 to 2147483647"},
		"an exponent":                     {`{"groups": [], "policy": {"shapes": 1e3}}`, "s.json: policy.shapes: 1e3: want a whole number from 0 to 2147483647"},
		"a turn of no plan":               {`{"groups": [], "turn": "next"}`, `s.json: turn: "next": want deferred.next of the plan before, 16 hexadecimal digits, or none to begin`},
		"no hosts":                        {`{"groups": [{"name": "a", "numOfHosts": 0}]}`, "s.json: groups[0].numOfHosts: 0: want a whole number from 1 to 100000"},
		"a negative amount":               {`{"groups": [{"name": "a", "resources": {"CPU": -1}}]}`, "s.json: groups[0].resources.CPU: -1: want an amount from 0 to 922337203685477.5807, to four decimal places"},
		"an amount too small":             {`{"groups": [], "pendingRequests": [{"resources": {"CPU": 0.00001}, "count": 1}]}`, "s.json: pendingRequests[0].resources.CPU: 0.00001: want an amount from 0 to 109951162777600, to four decimal places"},
		"an amount near zero":             {`{"groups": [{"name": "a", "resources": {"CPU": -1E-9}}]}`, "s.json: groups[0].resources.CPU: -1E-9: want an amount from 0 to 922337203685477.5807, to four decimal places"},
		"an amount as text":               {`{"groups": [{"name": "a", "resources": {"CPU": "1"}}]}`, `s.json: groups[0].resources.CPU: "1": want an amount from 0 to 922337203685477.5807, to four decimal places`},
		"NaN":                             {`{"groups": [{"name": "a", "resources": {"CPU": NaN}}]}`, "s.json: line 1, column 48: invalid character 'N' looking for beginning of value: want a JSON object"},
		"unknown state":                   {`{"groups": [], "nodes": [{"pod": "p", "group": "g", "state": "BUSY"}]}`, `s.json: nodes[0].state: "BUSY": want RUNNING, IDLE, PENDING, ALLOCATION_TIMEOUT or LEAVING`},
		"node without a pod":              {`{"groups": [], "nodes": [{"group": "g", "state": "IDLE"}]}`, "s.json: nodes[0].pod: missing: want the pod's name"},
		"node without a group":            {`{"groups": [], "nodes": [{"pod": "p", "state": "IDLE"}]}`, "s.json: nodes[0].group: missing: want the worker group's name"},
		"duplicate pod":                   {`{"groups": [], "nodes": [{"pod": "p", "group": "g", "state": "IDLE"}, {"pod": "p", "group": "g", "state": "IDLE"}]}`, `s.json: nodes[1].pod: "p": want a unique name: nodes[0] has this one`},
		"negative idle time":              {`{"groups": [], "nodes": [{"pod": "p", "group": "g", "state": "IDLE", "idleSeconds": -1}]}`, "s.json: nodes[0].idleSeconds: -1: want a number from 0 to 2147483647"},
		"a request of none":               {`{"groups": [], "pendingRequests": [{"resources": {"CPU": 1}, "count": 0}]}`, "s.json: pendingRequests[0].count: 0: want a whole number from 1 to 1099511627776"},
		"a request without count":         {`{"groups": [], "pendingRequests": [{"resources": {"CPU": 1}}]}`, "s.json: pendingRequests[0].count: missing: want how many of them wait, at least 1"},
		"a request for nothing":           {`{"groups": [], "requestResources": [{"count": 1}]}`, `s.json: requestResources[0].resources: missing: want an object of amounts such as {"CPU": 1}`},
		"a negative request":              {`{"groups": [], "pendingRequests": [{"resources": {"CPU": 1}, "count": -3}]}`, "s.json: pendingRequests[0].count: -3: want a whole number from 1 to 1099511627776"},
		"a moment of no calendar":         {`{"groups": [], "takenAt": "2026-02-31T00:00:00Z"}`, `s.json: takenAt: "2026-02-31T00:00:00Z": want a time such as 2026-01-31T12:00:00Z`},
		"a negative price":                {`{"groups": [{"name": "a", "price": -1}]}`, "s.json: groups[0].price: -1: want a number from 0 to 1000000000"},
		"duplicate gang":                  {`{"groups": [], "pendingGangRequests": [{"id": "a", "strategy": "PACK", "bundles": [{}]}, {"id": "a", "strategy": "PACK", "bundles": [{}]}]}`, `s.json: pendingGangRequests[1].id: "a": want a unique name: pendingGangRequests[0] has this one`},
		"text behind the end":             {`{"groups": []} {}`, "s.json: line 1, column 16: invalid character '{' after top-level value: want a JSON object"},
		"nothing":                         {``, `s.json: it is empty: want a snapshot {"groups": […], "nodes": […], …}, a JSON object with the keys of docs/reference/plan.md`},
		"a bad selector":                  {`{"groups": [], "pendingRequests": [{"resources": {}, "count": 1, "labelSelectors": [{"a": "in(b"}]}]}`, `s.json: pendingRequests[0].labelSelectors[0].a: "in(b": ` + expressionWant + "the list has no ) at its end"},
		"a selector of no value":          {`{"groups": [], "pendingGangRequests": [{"strategy": "PACK", "bundles": [{}], "bundleLabelSelectors": [{"a": "!"}]}]}`, `s.json: pendingGangRequests[0].bundleLabelSelectors[0].a: "!": ` + expressionWant + "no value after !"},
		"a selector of no text":           {`{"groups": [], "pendingRequests": [{"resources": {}, "count": 1, "labelSelectors": [{"a": 7}]}]}`, `s.json: pendingRequests[0].labelSelectors[0].a: 7: want a string`},
		"a key twice":                     {`{"groups": [{"name": "a", "maxReplicas": 3, "minReplicas": 1, "maxReplicas": 4}]}`, "s.json: groups[0].maxReplicas: repeated key: want each key of an object once"},
		"a key twice, once escaped":       {`{"groups": [{"name": "b"}, {"name": "a", "resources": {"CPU": 3, "C\u0050U": 4}}]}`, "s.json: groups[1].resources.CPU: repeated key: want each key of an object once"},
		"a key twice in a manifest":       {`{"rayCluster": {"spec": {"workerGroupSpecs": [[], {"a": {}, "a": 1}]}}}`, "s.json: rayCluster.spec.workerGroupSpecs[1].a: repeated key: want each key of an object once"},
		"a misspelt strategy":             {`{"groups": [], "pendingGangRequests": [{"strategi": "PACK", "bundles": [{}]}]}`, "s.json: pendingGangRequests[0].strategy: missing: want PACK, SPREAD, STRICT_PACK or STRICT_SPREAD; strategi is unknown"},
		"a value of many lines":           {"{\"groups\": {\n\t\"a\": 1\n}}", `s.json: groups: {"a":1}: want a list […]`},
		"a long value":                    {`{"groups": {"a": "` + strings.Repeat("é", 100) + `"}}`, `s.json: groups: {"a":"` + strings.Repeat("é", 27) + `…: want a list […]`},
		"unknown strategy":                {`{"groups": [], "pendingGangRequests": [{"strategy": "TIGHT", "bundles": [{}]}]}`, `s.json: pendingGangRequests[0].strategy: "TIGHT": want PACK, SPREAD, STRICT_PACK or STRICT_SPREAD`},
		"a gang of nothing":               {`{"groups": [], "pendingGangRequests": [{"strategy": "PACK", "bundles": []}]}`, "s.json: pendingGangRequests[0].bundles: []: want at least one bundle"},
		"selectors not parallel":          {`{"groups": [], "pendingGangRequests": [{"strategy": "PACK", "bundles": [{}, {}], "bundleLabelSelectors": [{}]}]}`, "s.json: pendingGangRequests[0].bundleLabelSelectors: [{}]: want one selector for each of the 2 bundles, or none"},
		"fallback selectors not parallel": {`{"groups": [], "pendingGangRequests": [{"strategy": "PACK", "bundles": [{}], "fallbackBundles": [[{}, {}]], "fallbackBundleLabelSelectors": [[{}]]}]}`, "s.json: pendingGangRequests[0].fallbackBundleLabelSelectors[0]: [{}]: want one selector for each of the 2 bundles of the alternative, or none"},
		"fallback selectors of nothing":   {`{"groups": [], "pendingGangRequests": [{"strategy": "PACK", "bundles": [{}], "fallbackBundleLabelSelectors": [[{}]]}]}`, "s.json: pendingGangRequests[0].fallbackBundleLabelSelectors: [[{}]]: want one list of selectors for each of the 0 alternatives, or none"},
		"unknown upscaling mode":          {`{"groups": [], "upscalingMode": "Bold"}`, `s.json: upscalingMode: "Bold": want Default, Aggressive or Conservative`},
		"a share above one":               {`{"groups": [{"name": "a", "cloudAvailability": 1.1}]}`, "s.json: groups[0].cloudAvailability: 1.1: want a number from 0 to 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := snapshotfile.ReadSnapshot(strings.NewReader(c.text), "s.json")
			var bad *snapshotfile.InputError
			if !errors.As(err, &bad) {
				t.Fatalf("error %v, want an *InputError", err)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADepthBombIsRefusedWhereverItLies(t *testing.T) {
	const deep = 1_000_000
	open, closed := strings.Repeat("[", deep), strings.Repeat("]", deep)
	objects := strings.Repeat(`{"a":`, deep)
	for name, bomb := range map[string]string{
		"never closed":            `{"groups": ` + open,
		"in the groups":           `{"groups": ` + open + closed + `}`,
		"in a key that is unread": `{"groups": [], "note": ` + open + closed + `}`,
		"of objects":              objects + "1" + strings.Repeat("}", deep),
	} {
		_, err := snapshotfile.ReadSnapshot(strings.NewReader(bomb), "bomb.json")
		var bad *snapshotfile.InputError
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "bomb.json: line 1, column ") || !strings.Contains(err.Error(), "exceeded max depth") {
			t.Errorf("%s: error %v, want the place at which it is too deep", name, err)
		}
	}
}

// endless is an endless stream of spaces.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestAFileThatIsTooLargeIsRefused(t *testing.T) {
	_, err := snapshotfile.ReadSnapshot(endless{}, "big")
	if err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("error %v", err)
	}
}

// emptyAsNil takes an empty list or map for none. Resources are exact: a node that says nothing of them is not empty.
var emptyAsNil = cmp.FilterPath(func(p cmp.Path) bool {
	return p.Last().Type() != reflect.TypeFor[raydemand.Bundle]()
}, cmpopts.EquateEmpty())

func TestAnExportReadsBackToAnEqualSnapshot(t *testing.T) {
	forEachKind(t, func(t *rapid.T, s Snapshot) {
		s.Policy, s.Turn = drawCaps(t), rapid.SampledFrom([]string{"", "8000000000000000"}).Draw(t, "turn")
		s = snapshotfile.Exportable(s)
		doc, err := snapshotfile.ReadDocument(strings.NewReader(asJSON(t, s)), "drawn")
		if err != nil || len(doc.Findings) > 0 {
			t.Fatalf("%v, findings %+v", err, doc.Findings)
		}
		if diff := cmp.Diff(s, doc.Snapshot, emptyAsNil); diff != "" {
			t.Errorf("(-exported +read):\n%s", diff)
		}
	})
}

// explainSome explains the first of each kind.
func explainSome(s Snapshot) {
	explainDemand(s, raydemand.Request{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}})
	for _, r := range s.Requests[:min(1, len(s.Requests))] {
		explainDemand(s, r)
	}
	for _, g := range s.Groups[:min(1, len(s.Groups))] {
		explainGroup(s, g.Name)
	}
	for _, n := range s.Nodes[:min(3, len(s.Nodes))] {
		explainPod(s, n.Pod)
	}
}

func FuzzSnapshotsOfAnyBytesArePlannedOrRefused(f *testing.F) {
	files, err := filepath.Glob("testdata/cases/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for i, file := range files {
		if raw, err := os.ReadFile(file); err == nil && i%6 == 0 {
			f.Add(raw)
		}
	}
	f.Add([]byte(`{"groups":[{"name":"a","numOfHosts":100000,"resources":{"CPU":0.0001}}],"pendingRequests":[{"resources":{"CPU":0.0001},"count":1099511627776}]}`))
	f.Add([]byte(`{"groups":[{"name":"a","minReplicas":2147483647,"replicas":2147483647,"numOfHosts":100000}],"head":{"available":{"CPU":9}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := snapshotfile.ReadSnapshot(strings.NewReader(string(raw)), "fuzz")
		var bad *snapshotfile.InputError
		switch {
		case err == nil:
			asJSON(t, Compute(s, Policy{}))
			explainSome(s)
		case !errors.As(err, &bad):
			t.Errorf("error %v is no *InputError", err)
		}
	})
}
