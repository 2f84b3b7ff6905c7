package printer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

func someCosts(by apiv1.CostsBy) apiv1.Costs {
	until := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	item := func(cluster, owner, cause, why string, cost float64) apiv1.CostItem {
		i := apiv1.CostItem{Namespace: "ml", Cluster: cluster, Owner: owner, Cause: cause, Why: why, PodSeconds: 3600, GpuSeconds: 7200, Cost: cost}
		switch by {
		case apiv1.CostsByCluster:
			i.Owner = ""
		case apiv1.CostsByGroup:
			i.Owner, i.Group = "", "gpu"
		case apiv1.CostsByOwner:
			i.Cluster = ""
		case apiv1.CostsByCause:
			i.Namespace, i.Cluster, i.Owner = "", "", ""
		}
		return i
	}
	c := apiv1.Costs{Since: until.Add(-24 * time.Hour), Until: until, By: by, Currency: "USD",
		Items: []apiv1.CostItem{item("etl", "RayJob/etl", "used", "", 1), item("llm", "RayService/llm", "idle", "minimum", 2.5),
			item("llm", "RayService/llm", "used", "", 10)},
		Idle: []apiv1.CostIdle{{Namespace: "ml", Cluster: "llm", Message: "4 of 16 GPUs are idle; minReplicas keeps them", Command: "kubectl edit"}}}
	return c
}

func TestTheTableOfCostsHasAColumnForEachCause(t *testing.T) {
	for by, want := range map[apiv1.CostsBy]string{
		apiv1.CostsByCluster: `
RAYCLUSTER  GPU-HOURS  COST USD   USED  IDLE
ml/llm            4.0     12.50  10.00  2.50
ml/etl            2.0      1.00   1.00  0.00

6.0 GPU-hours, 13.50 USD in 24h, since 2026-03-01T12:00:00Z.
2.50 USD of it was idle: minimum 2.50 (2.0 GPU-hours).

ml/llm: 4 of 16 GPUs are idle; minReplicas keeps them
  kubectl edit
`,
		apiv1.CostsByGroup: `
RAYCLUSTER  GROUP  GPU-HOURS  COST USD   USED  IDLE
ml/llm      gpu          4.0     12.50  10.00  2.50
ml/etl      gpu          2.0      1.00   1.00  0.00

6.0 GPU-hours, 13.50 USD in 24h, since 2026-03-01T12:00:00Z.
2.50 USD of it was idle: minimum 2.50 (2.0 GPU-hours).

ml/llm: 4 of 16 GPUs are idle; minReplicas keeps them
  kubectl edit
`,
		apiv1.CostsByOwner: `
NAMESPACE  OWNER           GPU-HOURS  COST USD   USED  IDLE
ml         RayService/llm        4.0     12.50  10.00  2.50
ml         RayJob/etl            2.0      1.00   1.00  0.00

6.0 GPU-hours, 13.50 USD in 24h, since 2026-03-01T12:00:00Z.
2.50 USD of it was idle: minimum 2.50 (2.0 GPU-hours).

ml/llm: 4 of 16 GPUs are idle; minReplicas keeps them
  kubectl edit
`,
	} {
		var out strings.Builder
		err := WriterOf("table", Look{}, WriteCosts)(&out, someCosts(by))
		if diff := cmp.Diff(want[1:], out.String()); err != nil || diff != "" {
			t.Errorf("by %s: %v (-want +got):\n%s", by, err, diff)
		}
	}
}

func TestTheMostExpensiveReasonOfIdleWorkersComesFirst(t *testing.T) {
	c := someCosts(apiv1.CostsByCluster)
	more := c.Items[1]
	more.Why, more.Cost = "idle_timeout", 3
	c.Items = append(c.Items, more)
	var out strings.Builder
	const want = "\n5.50 USD of it was idle: idle_timeout 3.00 (2.0 GPU-hours), minimum 2.50 (2.0 GPU-hours).\n"
	if err := WriterOf("table", Look{}, WriteCosts)(&out, c); err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("%v: got %s, want %q", err, out.String(), want)
	}
}

func TestTheTableOfCausesSaysWhatTheAnswerLacks(t *testing.T) {
	c := someCosts(apiv1.CostsByCause)
	c.Items, c.Idle = c.Items[1:], nil
	c.Items[0].UnpricedPodSeconds = 3600
	var out strings.Builder
	err := WriterOf("table", Look{}, WriteCosts)(&out, c)
	want := `
CAUSE  WHY      POD-HOURS  GPU-HOURS  COST USD
used   -              1.0        2.0     10.00
idle   minimum        1.0        2.0      2.50

4.0 GPU-hours, 12.50 USD in 24h, since 2026-03-01T12:00:00Z.
50 % of the pods' time has no price: see ` + "`--prices`" + ` in docs/reference/costs.md.
`
	if diff := cmp.Diff(want[1:], out.String()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	out.Reset()
	if err := WriterOf("table", Look{}, WriteCosts)(&out, apiv1.Costs{Since: c.Since}); err != nil || out.String() != "No costs since 2026-03-01T12:00:00Z: nothing has been added up.\n" {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestCostsAsCSV(t *testing.T) {
	var out strings.Builder
	c := someCosts(apiv1.CostsByOwner)
	c.Items = c.Items[1:2]
	c.Items[0].Owner = `request/ann, "the boss"`
	err := WriteCostsCSV(&out, c)
	want := `namespace,cluster,group,owner,cause,why,pod_seconds,gpu_seconds,cost,currency,unpriced_pod_seconds
ml,,,"request/ann, ""the boss""",idle,minimum,3600,7200,2.5,USD,0
`
	if diff := cmp.Diff(want, out.String()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
