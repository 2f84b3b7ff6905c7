package printer

import (
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

func TestStatusShowsHowFarStartingWorkersAre(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	in := func(seconds int) *time.Time {
		at := now.Add(time.Duration(seconds) * time.Second)
		return &at
	}
	var out strings.Builder
	err := WriterOf("table", Look{Now: func() time.Time { return now }}, WriteCluster)(&out, apiv1.Cluster{
		Groups: []apiv1.Group{{Name: "gpu", Starting: 9}},
		Arrivals: []apiv1.Arrival{
			{Pod: "a", Group: "gpu", Stage: "starting", Since: in(-40), Message: "ImagePullBackOff", ExpectedAt: in(-30), LateAt: in(-1)},
			{Pod: "b", Group: "gpu", Stage: "node-launched", Since: in(-60), ExpectedAt: in(60), LateAt: in(200)},
			{Pod: "c", Group: "gpu", Stage: "node-launched", Since: in(-12), ExpectedAt: in(120), LateAt: in(240)},
			{Pod: "d", Group: "gpu", Stage: "node-requested", Since: in(-5), ExpectedAt: in(-1), LateAt: in(40)},
			{Pod: "e", Group: "gpu", Stage: "requested"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"STARTING PODS STAGE SINCE READY gpu 1 starting 40s later than usual: ImagePullBackOff", "gpu 2 node-launched 60s expected in about 2m (p90 4m)",
		"gpu 1 node-requested 5s later than usual (p90 in 40s)", "gpu 1 requested - not known yet and 4 more",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestPodsWithAndWithoutAMessageHaveALineEach(t *testing.T) {
	var arrivals []apiv1.Arrival
	for _, message := range []string{"no capacity", "", "no capacity", "", "no capacity"} {
		arrivals = append(arrivals, apiv1.Arrival{Group: "gpu", Stage: "waits-for-node", Message: message})
	}
	lines := alikeArrivals(arrivals)
	if len(lines) != 2 || len(lines[0]) != 3 || len(lines[1]) != 2 {
		t.Errorf("got %+v, want a line for 3 pods and one for 2", lines)
	}
}
