package snapshotfile

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
)

func TestNamesWithoutEffectAreReported(t *testing.T) {
	const promise = `"promised": [{"rayCluster": "ml/b", "pods": 1, "pod": {"name": "ml/b/gpu", "requests": {"cpu": 1}}}]`
	grouped := func(accepts, promised string) string {
		return `{"groups": [{"name": "a", "resources": {"CPU": 1}, "maxReplicas": 1}],
			"places": [{"nodes": 1, "free": {"cpu": 8}, "accepts": [` + accepts + `]}, {"nodes": 1, "free": {"cpu": 8}, "accepts": [` + accepts + `]}]` + promised + `}`
	}
	quota := func(podTakes string) string {
		return `, "quotas": [{"name": "q", "resource": "cpu", "amount": 2, "podTakes": {` + podTakes + `}}]`
	}
	const cluster = `{"rayCluster": {"spec": {"workerGroupSpecs": [{"groupName": "a"}]}}`
	for name, test := range map[string]struct {
		text, field string
	}{
		"a group and a promised pod":              {grouped(`"a", "ml/b/gpu"`, ", "+promise), ""},
		"a promised pod that no place accepts":    {grouped(`"a"`, ", "+promise), "promised[0].pod.name"},
		"a promise of no pods":                    {grouped(`"a"`, ", "+strings.Replace(promise, `"pods": 1`, `"pods": 0`, 1)), ""},
		"another RayCluster without promises":     {grouped(`"a", "ml/c/gpu"`, ""), ""},
		"a name of nothing, reported once":        {grouped(`"a", "b"`, ""), "places[0].accepts[1]"},
		"a quota of a group that is gone":         {grouped(`"a"`, quota(`"b": 1`)), ""},
		"a quota of a group of a RayCluster":      {cluster + quota(`"a": 1`) + "}", ""},
		"a quota of none of a RayCluster":         {cluster + quota(`"b": 1`) + "}", "quotas[0].podTakes"},
		"promises beside a RayCluster":            {`{"rayCluster": {}, ` + promise + `}`, "promised"},
		"a RayCluster without promises":           {`{"rayCluster": {}}`, ""},
		"a RayCluster with an empty promise list": {`{"rayCluster": {}, "promised": []}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := ReadDocument(strings.NewReader(test.text), "s.json")
			if err != nil {
				t.Fatal(err)
			}
			var fields []string
			for _, f := range doc.Findings {
				if f.Code == model.FindingWithoutEffect {
					fields = append(fields, f.Field)
				}
			}
			if got := strings.Join(fields, ", "); got != test.field {
				t.Errorf("findings about %q, want %q", got, test.field)
			}
		})
	}
}

// What is free on a node is there once, however often a file lists the node.
func TestANodeCountsOnceInPlaces(t *testing.T) {
	place := func(more string) string { return `{"nodes": 1, "free": {"cpu": 8}, "accepts": ["a"]` + more + `}` }
	for name, test := range map[string]struct {
		places []string
		kept   int
		field  string
	}{
		"the same node twice":            {[]string{place(`, "node": "n1"`), place(`, "node": "n2"`), place(`, "node": "n1"`)}, 2, "places[2].node"},
		"nodes without a name":           {[]string{place(""), place("")}, 2, ""},
		"a new node like one of them":    {[]string{place(`, "node": "n1"`), place(`, "new": true, "like": "n1"`)}, 2, ""},
		"two of a new node, by its name": {[]string{place(`, "node": "n1", "new": true`), place(`, "node": "n1", "new": true`)}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := `{"groups": [{"name": "a", "maxReplicas": 1}], "places": [` + strings.Join(test.places, ", ") + `]}`
			doc, err := ReadDocument(strings.NewReader(text), "s.json")
			if err != nil {
				t.Fatal(err)
			}
			field := ""
			for _, f := range doc.Findings {
				if f.Code == model.FindingNodeRepeated {
					field += f.Field
				}
			}
			if len(doc.Snapshot.Places) != test.kept || field != test.field {
				t.Errorf("%d places, findings about %q, want %d and %q", len(doc.Snapshot.Places), field, test.kept, test.field)
			}
		})
	}
}
