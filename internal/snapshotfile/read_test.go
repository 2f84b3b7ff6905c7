package snapshotfile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestWhereAStartingWorkerIsIsReadAsItIsWritten(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	want := &arrival.State{Stage: arrival.NodeReady, Message: "its GPU", Since: at}
	text, err := json.Marshal(model.Snapshot{Groups: []model.Group{{Name: "gpu", NumOfHosts: 1}}, Nodes: []model.Node{{Pod: "a", Group: "gpu", State: model.Pending, Arrival: want}}})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := ReadDocument(strings.NewReader(string(text)), "s.json")
	if err != nil || len(doc.Findings) > 0 {
		t.Fatalf("%v, %v", err, doc.Findings)
	}
	if diff := cmp.Diff(want, doc.Snapshot.Nodes[0].Arrival); diff != "" {
		t.Errorf("arrival (-want +got):\n%s", diff)
	}
	wrong := strings.Replace(string(text), "node-ready", "node-almost", 1)
	if _, err = ReadDocument(strings.NewReader(wrong), "s.json"); err == nil || !strings.Contains(err.Error(), "nodes[0].arrival.stage") {
		t.Errorf("a stage that does not exist: %v", err)
	}
}

func TestPlacesOfASnapshotAreReadAsTheyAreWritten(t *testing.T) {
	written := model.Snapshot{
		Groups: []model.Group{{Name: "g", Bound: 2, Pod: &landing.Pod{
			Name: "g", Requests: landing.Quantities{"cpu": raydemand.One / 2, "memory": raydemand.Whole(3 << 40)},
			Cards: &landing.CardRequest{Cards: 2, Memory: 3, MemoryPercent: 4, Cores: 5, Stacked: true},
			Apart: []string{"g"},
		}}},
		Places: []landing.Place{
			{Pool: "p", Node: "n", Nodes: new(int64(3)), Free: landing.Quantities{"cpu": raydemand.Whole(8)}, CardOrder: sharing.LastCard,
				Cards: []landing.Card{{Count: 2, Total: 15, Memory: new(int64(7)), Cores: new(int64(0)), Slots: new(int64(9)), Used: true}, {Total: 3},
					{Parts: []landing.Part{{Memory: 10, Cores: 14}, {Memory: 20, Cores: 28}}, Refuses: []string{"g"}}},
				Accepts: []string{"g"}, Holds: map[string]int64{"g": 1}},
			{Pool: "q", New: true, AnySize: true, Unproven: true, Free: landing.Quantities{}, Accepts: []string{"g"}},
		},
		Quotas: []landing.Quota{
			{Name: "flavor spot of ClusterQueue q", Resource: "memory", Amount: raydemand.Whole(3 << 40),
				PodTakes: raydemand.Bundle{"g": raydemand.One / 2}, Why: "no quota"},
			{Name: "what was granted", Resource: "pods", PodTakes: raydemand.Bundle{}},
		},
	}
	text, err := json.Marshal(Exportable(written))
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadDocument(bytes.NewReader(text), "s.json")
	if err != nil || len(read.Findings) > 0 {
		t.Fatalf("%v, findings %+v", err, read.Findings)
	}
	if diff := cmp.Diff(written.Places, read.Places); diff != "" {
		t.Errorf("places (-written +read):\n%s", diff)
	}
	if diff := cmp.Diff(written.Quotas, read.Quotas); diff != "" {
		t.Errorf("quotas (-written +read):\n%s", diff)
	}
	if diff := cmp.Diff(written.Groups[0].Pod, read.Groups[0].Pod, cmpopts.IgnoreUnexported(landing.CardRequest{})); diff != "" || read.Groups[0].Bound != 2 {
		t.Errorf("pod, bound %d (-written +read):\n%s", read.Groups[0].Bound, diff)
	}
}

func TestABadPlaceIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		`"places": [{"node": "a"}, {"node": "a"}]`:                  `s.json: places[1].node: "a": want a unique name: places[0] has this one`,
		`"places": [{"nodes": -1}]`:                                 `s.json: places[0].nodes: -1: want`,
		`"places": [{"free": {"cpu": "8"}}]`:                        `s.json: places[0].free.cpu: "8": want an amount`,
		`"places": [{"cardOrder": "first"}]`:                        `s.json: places[0].cardOrder: "first": want binpack, spread or last`,
		`"places": [{"cards": [{"total": 15, "memory": 16}]}]`:      `s.json: places[0].cards[0].memory: 16: want at most total, which is 15`,
		`"places": [{"new": true, "unproven": true}]`:               `s.json: places[0].unproven: true: want true only beside anySize: true`,
		`"places": [{"cards": [{"slots": "two"}]}]`:                 `s.json: places[0].cards[0].slots: "two": want`,
		`"groups": [{"name": "g", "pod": {"apart": [{}]}}]`:         `s.json: groups[0].pod.apart[0]: {}: want`,
		`"groups": [{"name": "g", "pod": {"cards": {"cards":-1}}}]`: `s.json: groups[0].pod.cards.cards: -1: want`,
	} {
		if !strings.Contains(text, "groups") {
			text = `"groups": [], ` + text
		}
		if _, err := ReadSnapshot(strings.NewReader("{"+text+"}"), "s.json"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("{%s}\n%v\nwant … %s", text, err, want)
		}
	}
}

func TestFaultsOfWarmCapacity(t *testing.T) {
	for _, c := range []struct{ warm, want string }{
		{`{"keep": [{"name": "a", "count": 1}]}`, `warm.keep[0].group: missing: want the name of a worker group`},
		{`{"keep": [{"name": "a", "group": "gpu", "resources": {"GPU": 1}, "count": 1}]}`, `warm.keep[0].group: "gpu": want either`},
		{`{"keep": [{"name": "a", "resources": {"": 1}, "count": 1}]}`, `warm.keep[0].resources: {"":1}: want the name of each resource`},
		{`{"keep": [{"name": "a", "group": "gpu"}]}`, `warm.keep[0].count: missing: want how many are free`},
		{`{"keep": [{"group": "gpu", "count": 1}]}`, `warm.keep[0].name: missing: want a name`},
		{`{"keep": [{"name": "a", "group": "x", "count": 1}, {"name": "a", "group": "y", "count": 1}]}`, `warm.keep[1].name`},
	} {
		_, err := ReadSnapshot(strings.NewReader(`{"groups": [], "warm": `+c.warm+`}`), "s.json")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.warm, err, c.want)
		}
	}
}

func TestAWarmEntryOfASliceAloneHasOneGPU(t *testing.T) {
	s, err := ReadSnapshot(strings.NewReader(`{"groups": [], "warm": {"keep": [
		{"name": "a", "slice": {"memory": "10Gi"}, "count": 1}]}}`), "s.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Warm.Keep[0]; got.Resources["GPU"].String() != "1" {
		t.Errorf("%+v", got)
	}
}
