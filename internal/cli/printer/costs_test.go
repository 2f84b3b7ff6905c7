package printer

import (
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

func TestTheTableOfCostsHasARowForEachCause(t *testing.T) {
	const rest = `
6.0 GPU-hours, 13.50 USD in 24h, since 2026-03-01T12:00:00Z.
33 % of the pods' time has no price: see ` + "`--pools`" + ` in docs/reference/costs.md.

ml/llm: 4 of 16 GPUs are idle; minReplicas keeps them
  kubectl edit
`
	for by, want := range map[apiv1.CostsBy]string{
		apiv1.CostsByCluster: `
RAYCLUSTER  CAUSE  WHY      POD-HOURS  GPU-HOURS  COST USD
ml/etl      used   -        1.0        2.0        1.00
ml/llm      idle   minimum  1.0        2.0        2.50
ml/llm      used   -        1.0        2.0        10.00
`,
		apiv1.CostsByGroup: `
RAYCLUSTER  GROUP  CAUSE  WHY      POD-HOURS  GPU-HOURS  COST USD
ml/etl      gpu    used   -        1.0        2.0        1.00
ml/llm      gpu    idle   minimum  1.0        2.0        2.50
ml/llm      gpu    used   -        1.0        2.0        10.00
`,
		apiv1.CostsByOwner: `
NAMESPACE  OWNER           CAUSE  WHY      POD-HOURS  GPU-HOURS  COST USD
ml         RayJob/etl      used   -        1.0        2.0        1.00
ml         RayService/llm  idle   minimum  1.0        2.0        2.50
ml         RayService/llm  used   -        1.0        2.0        10.00
`,
		apiv1.CostsByCause: `
CAUSE  WHY      POD-HOURS  GPU-HOURS  COST USD
used   -        1.0        2.0        1.00
idle   minimum  1.0        2.0        2.50
used   -        1.0        2.0        10.00
`,
	} {
		var p Page
		costs := someCosts(by)
		costs.Items[0].UnpricedPodSeconds = 3600
		WriteCosts(&p, costs)
		if diff := cmp.Diff(want[1:]+rest, p.String()); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", by, diff)
		}
	}
	var p Page
	if WriteCosts(&p, apiv1.Costs{Since: someCosts("").Since}); p.String() != "No costs since 2026-03-01T12:00:00Z: nothing has been added up.\n" {
		t.Error(p.String())
	}
}
