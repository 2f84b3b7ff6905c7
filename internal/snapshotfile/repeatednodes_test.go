package snapshotfile

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
)

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
