package capacity_test

import (
	"encoding/json"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

// always and never are windows.
type fixed bool

func (f fixed) Open(time.Time) bool { return bool(f) }

func TestTheHighestCountOfTheSchedulesThatApplyCounts(t *testing.T) {
	schedule := func(count int64, open bool) capacity.Schedule {
		return capacity.Schedule{Start: "0 8 * * *", End: "0 9 * * *", Count: count, Window: fixed(open)}
	}
	for _, c := range []struct {
		name      string
		base      int64
		schedules []capacity.Schedule
		want      int64
		scheduled bool
	}{
		{"none applies", 2, []capacity.Schedule{schedule(4, false)}, 2, false},
		{"one applies", 2, []capacity.Schedule{schedule(4, true)}, 4, true},
		{"one lowers the count", 2, []capacity.Schedule{schedule(1, true)}, 1, true},
		{"the highest of several", 0, []capacity.Schedule{schedule(4, true), schedule(6, true), schedule(5, true)}, 6, true},
		{"one without a window never applies", 2, []capacity.Schedule{{Count: 7}}, 2, false},
	} {
		p := capacity.Policy{KeepWarm: []capacity.Warm{{Group: "gpu", Count: c.base, Schedules: c.schedules}}}
		got := p.At(time.Time{})
		if len(got) != 1 || got[0].Count != c.want || (got[0].Schedule != "") != c.scheduled {
			t.Errorf("%s: %+v, want count %d", c.name, got, c.want)
		}
	}
	p := capacity.Policy{KeepWarm: []capacity.Warm{{Group: "gpu", Count: 3, Schedules: []capacity.Schedule{schedule(0, true)}}}}
	if got := p.At(time.Time{}); len(got) != 0 {
		t.Errorf("a schedule of 0 wants %+v, want nothing", got)
	}
}

func TestAPolicyWritesWhatItReads(t *testing.T) {
	const text = `{"keepWarm":[{"group":"gpu","count":2,"schedules":[{"start":"0 8 * * 1-5","end":"0 19 * * 1-5",` +
		`"timeZone":"Europe/Berlin","count":4}]}],` +
		`"idle":{"suspendAfter":"24h30m"}}`
	var p capacity.Policy
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(p)
	if err != nil || string(again) != text {
		t.Errorf("%s, %v; want %s", again, err, text)
	}
}
