package snapshotfile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const warmText = `{"policy": "CapacityPolicy office", "keep": [
	{"name": "keepWarm[0]", "group": "gpu", "count": 4, "schedule": "from \"0 8 * * *\" to \"0 9 * * *\" (UTC)"},
	{"name": "keepWarm[1]", "resources": {"GPU": 0.5}, "labelSelectors": [{"zone": "a"}], "slice": {"memory": "10Gi"}, "count": 2}]}`

func TestWarmCapacityIsReadAsItIsWritten(t *testing.T) {
	s, err := ReadSnapshot(strings.NewReader(`{"groups": [], "warm": `+warmText+`}`), "s.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Warm.Keep) != 2 || s.Warm.Keep[1].Count != 2 {
		t.Errorf("read %+v", s.Warm)
	}
	text, err := json.Marshal(Exportable(s))
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadSnapshot(strings.NewReader(string(text)), "again.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Warm, again.Warm); diff != "" {
		t.Errorf("warm capacity (-written +read):\n%s", diff)
	}
}

func TestFaultsOfWarmCapacity(t *testing.T) {
	for _, c := range []struct{ warm, want string }{
		{`{"keep": [{"name": "a", "count": 1}]}`, `warm.keep[0].group: missing: want the name of a worker group`},
		{`{"keep": [{"name": "a", "group": "gpu", "resources": {"GPU": 1}, "count": 1}]}`, `warm.keep[0].group: "gpu": want either`},
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
