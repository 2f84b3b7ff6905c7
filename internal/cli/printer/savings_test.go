package printer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli/table"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

func someSavings() apiv1.Savings {
	since := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	item := func(kind string, from, to, saves float64) apiv1.SavingItem {
		return apiv1.SavingItem{Namespace: "ml", Cluster: "llm", Group: "gpu", Kind: kind, From: from, To: to, Since: since, Cost: 100,
			WouldCost: 100 - saves, Saves: saves, SavedGpuSeconds: saves * 360, MoreStarts: 3, MoreWaitedSeconds: 90, Why: "because", Change: "kubectl edit"}
	}
	s := apiv1.Savings{Since: since, Until: since.Add(24 * time.Hour), Currency: "USD", Items: []apiv1.SavingItem{
		item("min_replicas", 4, 0, 50), item("min_replicas", 4, 2, 25), item("idle_timeout", 0, 60, 5), item("smaller_workers", 8, 4, 4),
		item("keep_warm", 2, 1, 3), item("manage", 0, 300, 2), item("slices", 1, 0.25, 1), item("idle_timeout", 600, 1800, -7)}}
	s.Items[2].StartAssumed = true
	return s
}

func TestTheTableOfSavingsHasTheBestOfEachKind(t *testing.T) {
	s := someSavings()
	s.Items = s.Items[:4]
	var out strings.Builder
	err := WriteSavings(table.Look{}, false)(&out, s)
	want := `
#  RAYCLUSTER  GROUP  CHANGE                   COST USD  INSTEAD  GPU-HOURS  STARTS       WAITING
1  ml/llm      gpu    minReplicas 4 to 0         100.00    50.00       -5.0      +3        +1m30s
2  ml/llm      gpu    idle timeout none to 1m    100.00    95.00       -0.5      +3  about +1m30s
3  ml/llm      gpu    GPUs of a worker 8 to 4    100.00    96.00       -0.4      +3        +1m30s

1: because (since 2026-03-02T12:00:00Z)
  kubectl edit

2: because (since 2026-03-02T12:00:00Z)
  kubectl edit

3: because (since 2026-03-02T12:00:00Z)
  kubectl edit
`
	if diff := cmp.Diff(want[1:], out.String()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	out.Reset()
	err = WriteSavings(table.Look{}, true)(&out, someSavings())
	for _, want := range []string{"keepWarm 2 to 1", "managed, idle timeout 5m", "slice: GPUs 1 to 0.25", "idle timeout 10m to 30m", "107.00"} {
		if err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: want %q in\n%s", err, want, out.String())
		}
	}
	out.Reset()
	s.Items = someSavings().Items[7:]
	if err := WriteSavings(table.Look{}, false)(&out, s); err != nil || out.String() != "Nothing is known that would have cost less since 2026-03-02T12:00:00Z.\n" {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestSavingsAsCSV(t *testing.T) {
	var out strings.Builder
	s := someSavings()
	s.Items = s.Items[:1]
	err := WriteSavingsCSV(&out, s)
	want := `namespace,cluster,group,kind,from,to,since,cost,would_cost,saves,currency,saved_gpu_seconds,saved_pod_seconds,unpriced_pod_seconds,more_starts,more_waited_seconds,start_assumed,why,change
ml,llm,gpu,min_replicas,4,0,2026-03-02T12:00:00Z,100,50,50,USD,18000,0,0,3,90,false,because,kubectl edit
`
	if diff := cmp.Diff(want, out.String()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
