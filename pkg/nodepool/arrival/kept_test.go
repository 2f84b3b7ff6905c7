package arrival

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTimesAreKeptForTheNextProcess(t *testing.T) {
	var before History
	for i := range 3 {
		starts(&before, nil, "gpu", fmt.Sprint(i), "g1", 60+i)
	}
	text := before.Keep()
	if want := `{"gpu":{"node":[60,61,62],"join":[10,10,10],"whole":[70,71,72]}}`; text != want {
		t.Errorf("kept %s, want %s", text, want)
	}
	kept, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	living := Pod{UID: "2", Pool: "g1", CreatedAt: at(0), ScheduledAt: at(62), ReadyAt: at(80), Placed: true, Joined: true}
	joining := Pod{UID: "3", CreatedAt: at(950), ScheduledAt: at(980), Placed: true}
	after, pools := History{}, Pools{}
	group := Group{Name: "gpu", Kept: kept["gpu"], Pods: []Pod{living, joining}}
	after.Observe(at(1000), []Group{group}, &pools)
	if diff := cmp.Diff(before.Times(group, nil), after.Times(group, nil)); diff != "" {
		t.Errorf("the next process (-want +got):\n%s", diff)
	}
	if got := pools.samples([]string{"g1"}); len(got) != 1 {
		t.Errorf("the pool has %d times, want that of the living worker", len(got))
	}
	group.Pods[1].Joined = true
	after.Observe(at(1001), []Group{group}, &pools)
	if got := after.Times(group, nil).Whole.Samples; got != 4 {
		t.Errorf("%d workers are known after one more has joined, want 4", got)
	}
	var few History
	few.Observe(at(1000), []Group{{Name: "gpu", Kept: Samples{Join: []int64{7}}, Pods: []Pod{living}}}, nil)
	if got := few.Times(group, nil).Join; got.Samples != 2 {
		t.Errorf("with few kept times: %v, want that of the living worker as well", got)
	}
	var empty History
	if text := empty.Keep(); text != "" {
		t.Errorf("an empty history keeps %q", text)
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	var h History
	groups := []Group{}
	for i := range 1000 {
		pod := Pod{UID: fmt.Sprint(i), CreatedAt: at(0), ScheduledAt: at(60), ReadyAt: at(70), Placed: true, Joined: true}
		groups = append(groups, Group{Name: fmt.Sprintf("group-%03d", i), Pods: []Pod{pod}})
	}
	h.Observe(at(1000), groups, nil)
	text := h.Keep()
	kept, err := Read(text)
	if err != nil || len(text) > mostKept || len(kept) < 100 || len(kept["group-000"].Whole) != 1 {
		t.Errorf("%d groups in %d bytes, %v; want as many as fit into %d", len(kept), len(text), err, mostKept)
	}
}

func TestAFaultyTextIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"gpu": {"join": [1, 2.5]}}`: "cannot unmarshal", `{"gpu": {"joins": [1]}}`: `unknown field "joins"`, `[]`: "cannot unmarshal",
		`{"gpu": {"node": [1]}} x`: "nothing after it", `{}}`: "nothing after it",
		`{"gpu": {"node": [-1]}}`: "group gpu: -1, want 0 to 604800 seconds", `{"gpu": {"whole": [604801]}}`: "want 0 to 604800 seconds",
		`{"gpu": {"join": [` + strings.Repeat("1,", 20) + `1]}}`: "group gpu has 21 of them, want at most 20",
	} {
		if got, err := Read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", text, got, err, want)
		}
	}
}
