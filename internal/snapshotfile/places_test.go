package snapshotfile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestPlacesOfASnapshotAreReadAsTheyAreWritten(t *testing.T) {
	written := model.Snapshot{
		Groups: []model.Group{{Name: "g", Bound: 2, Pod: &landing.Pod{
			Name: "g", Requests: landing.Quantities{"cpu": raydemand.One / 2, "memory": raydemand.Whole(3 << 40)},
			Cards:  &landing.CardRequest{Cards: 2, Memory: 3, MemoryPercent: 4, Cores: 5, Whole: true, Order: sharing.EmptiestCard},
			Apart:  []string{"g"},
			Spread: []landing.Spread{{MaxSkew: 2, MinDomains: 3, Pods: []string{"g"}}},
		}}},
		Places: []landing.Place{
			{Pool: "p", Node: "n", Nodes: new(int64(3)), Free: landing.Quantities{"cpu": raydemand.Whole(8)}, CardOrder: sharing.LastCard,
				Cards: []landing.Card{{Count: 2, Total: 15, Memory: new(int64(7)), Cores: new(int64(0)), Slots: new(int64(9)), Used: true}, {Total: 3},
					{Parts: []landing.Part{{Memory: 10, Cores: 14}, {Memory: 20, Cores: 28}}, Refuses: []string{"g"}}},
				Accepts: []string{"g"}, Counted: []string{"h"}, Holds: map[string]int64{"g": 1}},
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
