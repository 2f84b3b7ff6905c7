package telemetry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// look is what a cycle sees of pod a: its group and state, and when it was created and scheduled, in seconds after noon;
// 0 means not yet. No state means that the pod is not there.
type look struct {
	at, created, scheduled int
	group                  string
	state                  planner.NodeState
	rayErr                 string
}

func after(seconds int) (at time.Time) {
	if seconds != 0 {
		at = noon.Add(time.Duration(seconds) * time.Second)
	}
	return at
}

// In each case the group gpu grows 10 s after noon, which is wanted for 2 s then. Pods that were alive when first seen
// and pods that go are not measured, and a pod that no known patch asked for has no beginning.
func TestEachStageOfAScaleUpIsMeasuredOnce(t *testing.T) {
	const coming, alive, gone = planner.Pending, planner.Running, planner.NodeState("")
	for name, c := range map[string]struct {
		looks []look
		want  []string
	}{
		"all stages": {[]look{{12, 11, 0, "gpu", coming, ""}, {40, 11, 31, "gpu", coming, ""}, {50, 11, 31, "gpu", coming, ""},
			{91, 11, 31, "gpu", alive, ""}, {92, 11, 31, "gpu", alive, ""}}, []string{"patched_to_scheduled 21s", "scheduled_to_alive 1m0s", "seen_to_alive 1m23s"}},
		"nobody sees it between its node and its life": {[]look{{12, 11, 0, "gpu", coming, ""}, {20, 11, 15, "gpu", alive, ""}},
			[]string{"patched_to_scheduled 5s", "scheduled_to_alive 5s", "seen_to_alive 12s"}},
		"a pod of another group":          {[]look{{12, 11, 20, "cpu", coming, ""}, {30, 11, 20, "cpu", alive, ""}}, []string{"scheduled_to_alive 10s"}},
		"a pod that was there before":     {[]look{{12, 5, 20, "gpu", coming, ""}, {30, 5, 20, "gpu", alive, ""}}, []string{"scheduled_to_alive 10s"}},
		"a pod whose creation is unknown": {[]look{{12, 0, 20, "gpu", coming, ""}, {30, 0, 20, "gpu", alive, ""}}, []string{"scheduled_to_alive 10s"}},
		"alive when first seen":           {[]look{{12, 11, 12, "gpu", alive, ""}, {13, 11, 12, "gpu", alive, ""}}, nil},
		"it goes":                         {[]look{{12, 11, 0, "gpu", coming, ""}, {13, 0, 0, "", gone, ""}, {14, 11, 12, "gpu", alive, ""}}, nil},
		"a reading that failed forgets no pod": {[]look{{12, 11, 13, "cpu", coming, ""}, {20, 0, 0, "", gone, "no answer"}, {30, 11, 13, "cpu", alive, ""}},
			[]string{"scheduled_to_alive 17s"}},
		"a patch is forgotten after an hour": {[]look{{3700, 3650, 0, "gpu", coming, ""}, {3720, 3650, 0, "gpu", alive, ""}}, nil},
	} {
		var s stages
		var got []string
		stage := func(stage string, took time.Duration) { got = append(got, stage+" "+took.String()) }
		s.observe(&addon.Decision{At: after(10), SeenToPatched: 2 * time.Second,
			Actions: []addon.Action{{At: after(10), Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", To: 1}}}, stage)
		for _, l := range c.looks {
			d := addon.Decision{At: after(l.at), RayErr: l.rayErr,
				Pods: addon.LatestOf([]nodepool.Worker{{Pod: "a", CreatedAt: after(l.created), ScheduledAt: after(l.scheduled)}})}
			if l.state != gone {
				d.Snapshot.Nodes = []planner.Node{{Pod: "a", Group: l.group, State: l.state}}
			}
			s.observe(&d, stage)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: stages (-want +got):\n%s", name, diff)
		}
		if len(s.coming) > 0 {
			t.Errorf("%s: still waits for %v", name, s.coming)
		}
	}
}
