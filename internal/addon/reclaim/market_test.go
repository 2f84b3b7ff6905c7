package reclaim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The finding says what prevents a taking, and a RayCluster that can give nothing now hides no other that can.
func TestWhyNothingIsTaken(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const (
		behind = "not now: the RayCluster is just being scaled"
		took   = "1 GPU from group gpu of RayCluster ml/%s (n0000-0: idle) would make room for 1 pod of group gpu; "
		young  = "RayCluster ml/%s, from which it may take GPUs, offers none: it gives no worker that has not run for 10m (--reclaim-min-runtime); Heliostat asks again in 10s"
		none   = "RayCluster ml/%s, from which it may take GPUs, offers none: " + behind + "; Heliostat asks again in 10s"
		takes  = took + "Heliostat takes them now"
		shadow = took + "RayCluster ml/%[1]s gives nothing: it is in shadow mode"
		spent  = took + "RayCluster ml/%[1]s gives at most 8 GPUs an hour (--reclaim-gpus-per-hour), and has given 8 GPUs"
		not    = took + "RayCluster ml/%[1]s has just refused: not now"
	)
	for name, c := range map[string]struct {
		a, b string // what the RayClusters a and b offer; a comes first
		want string // the finding of the taker
		from string // the RayCluster that it names
	}{
		"old workers":                     {"old", "old", takes, "a"},
		"young workers":                   {"young", "nothing", young, "a"},
		"an answer that there is nothing": {"behind", "nothing", none, "a"},
		"young ones hide no other":        {"young", "old", takes, "b"},
		"no answer hides no other":        {"behind", "old", takes, "b"},
		"the first of both":               {"behind", "young", none, "a"},
		"no worker may go":                {"nothing", "nothing", "", ""},
		"shadow mode":                     {"shadow", "young", shadow, "a"},
		"shadow mode hides no other":      {"shadow", "old", takes, "b"},
		"a spent budget":                  {"spent", "shadow", spent, "a"},
		"a spent budget hides no other":   {"spent", "old", takes, "b"},
		"a refusal":                       {"refused", "spent", not, "a"},
		"a refusal hides no other":        {"refused", "old", takes, "b"},
		"old offers count no more":        {"stale", "old", takes, "b"},
		"nor are they a reason":           {"stale", "nothing", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(nil, Settings{On: true, PerHour: 8, MinRuntime: 10 * time.Minute})
			o, offers := fullPool(1, 1, 1)
			o.View.Cluster.Key, o.View.Mode, o.View.Now = nodepool.ClusterKey{Namespace: "ml", Name: "high"}, nodepool.Managed, now
			var others []member
			for name, has := range map[string]string{"a": c.a, "b": c.b} {
				key := nodepool.ClusterKey{Namespace: "ml", Name: name}
				each := &member{key: key, offeredAt: now}
				switch has {
				case "shadow":
					each.unmanaged = "it is in shadow mode"
				case "spent":
					each.taken = []giveback.Taking{{At: now.Add(-time.Minute), GPUs: 8}}
				case "refused":
					each.refusedAt, each.refusal = now.Add(-time.Second), "not now"
				case "stale":
					each.offeredAt = now.Add(-answerWithin - time.Second)
				}
				switch has {
				case "old", "young", "shadow", "spent", "refused", "stale":
					each.offers = append(each.offers, offers[0])
					each.offers[0].Why, each.offers[0].Since = "idle", now.Add(-time.Hour)
					if has == "young" {
						each.offers[0].Since = now.Add(-time.Minute)
					}
				case "behind":
					each.noOffer = behind
				}
				others = append(others, *each)
			}
			slices.SortFunc(others, func(a, b member) int { return a.key.Compare(b.key) })
			f := &feature{market: m, short: now.Add(-time.Minute)}
			f.found = m.choose(newWhatIf(o), others, now)
			got, want := "", ""
			if f.found != nil {
				finding := f.finding(o)
				got = finding.Why + "; " + finding.Fix
			}
			if c.want != "" {
				want = fmt.Sprintf(c.want, c.from)
			}
			if got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

// Of the groups of one RayCluster that make the room, the one gives whose workers are idle, then the one that gives fewer.
func TestTheGroupThatLosesLeastGives(t *testing.T) {
	for name, c := range map[string]struct {
		gpus int64
		idle []string // the groups whose workers are idle
		want string
	}{
		"idle workers come first":  {1, []string{"b"}, "b"},
		"then the order of groups": {1, []string{"a", "b"}, "a"},
		"then the fewest workers":  {4, []string{"a", "b"}, "b"},
		"idle ones, even if more":  {4, []string{"a"}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			o, offers := fullPool(1, c.gpus, 1)
			for i := range offers { // each worker of b has the GPUs of two of a
				offers[i].Group = "a"
				if i >= 4 && i < 6 {
					offers[i].Group, offers[i].GPUs = "b", 2
					offers[i].Workers[0].Takes = landing.Quantities{"nvidia.com/gpu": raydemand.Whole(2)}
				}
				offers[i].Idle = slices.Contains(c.idle, offers[i].Group)
			}
			m := New(nil, Settings{On: true, PerHour: 8})
			got := m.from(newWhatIf(o), &member{offers: offers[:6]}, o.View.Now)
			if got == nil || got.group != c.want {
				t.Errorf("%+v, want workers of group %s", got, c.want)
			}
		})
	}
}

// A taking that is dated later than now, by another clock, counts until an hour after its date.
func TestATakingThatIsDatedLaterCountsAsNow(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	given := []giveback.Taking{{At: now.Add(-50 * time.Minute), GPUs: 1}, {At: now.Add(24 * time.Hour), GPUs: 8}}
	for _, c := range []struct {
		after time.Duration
		want  int64
	}{{0, 9}, {30 * time.Minute, 8}, {24 * time.Hour, 8}, {25 * time.Hour, 0}} {
		if got := giveback.Taken(given, now.Add(c.after)); got != c.want {
			t.Errorf("after %v, %d GPUs count, want %d", c.after, got, c.want)
		}
	}
	r := giveback.Reservation{Ask: giveback.Ask{GPUs: 2}, Deadline: now}
	r.Deadline = now.Add(r.Within())
	if got := giveback.TakingsText(r.Takings(given)); got != "2026-05-01T11:10:00Z 1, 2026-05-01T12:00:00Z 8, 2026-05-01T12:00:00Z 2" {
		t.Errorf("written: %s", got)
	}
}
