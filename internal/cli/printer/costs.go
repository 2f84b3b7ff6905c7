package printer

import (
	"fmt"
	"strconv"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
)

// WriteCosts writes a row for each RayCluster, group or owner and each cause, the sum, and what is idle now.
func WriteCosts(p *Page, c apiv1.Costs) {
	if len(c.Items) == 0 {
		p.Line("", "No costs since "+Moment(c.Since)+": nothing has been added up.")
		return
	}
	columns := map[apiv1.CostsBy][]string{apiv1.CostsByCluster: {"RAYCLUSTER"},
		apiv1.CostsByGroup: {"RAYCLUSTER", "GROUP"}, apiv1.CostsByOwner: {"NAMESPACE", "OWNER"}}[c.By]
	t := newTable(append(columns, "CAUSE", "WHY", "POD-HOURS", "GPU-HOURS", "COST "+c.Currency)...)
	var gpus, cost, pods, unpriced float64
	for _, item := range c.Items {
		cluster := item.Namespace + "/" + item.Cluster
		names := map[apiv1.CostsBy][]any{apiv1.CostsByCluster: {cluster}, apiv1.CostsByGroup: {cluster, item.Group},
			apiv1.CostsByOwner: {item.Namespace, item.Owner}}[c.By]
		t.Add(append(names, item.Cause, item.Why, hoursOf(item.PodSeconds), hoursOf(item.GpuSeconds),
			money(item.Cost))...)
		gpus, cost = gpus+item.GpuSeconds, cost+item.Cost
		pods, unpriced = pods+item.PodSeconds, unpriced+item.UnpricedPodSeconds
	}
	t.Write(p)
	p.Line("", "")
	p.Line("", fmt.Sprintf("%s GPU-hours, %s %s in %s, since %s.", hoursOf(gpus), money(cost), c.Currency,
		planner.Span(c.Until.Sub(c.Since).Seconds()), Moment(c.Since)))
	if pods > 0 && unpriced > 0 {
		p.Line("", fmt.Sprintf("%.0f %% of the pods' time has no price: see `--pools` in docs/reference/costs.md.",
			max(1, 100*unpriced/pods)))
	}
	for _, idle := range c.Idle {
		p.Line("", "")
		p.Line("", idle.Namespace+"/"+idle.Cluster+": "+idle.Message)
		p.Line("  ", idle.Command)
	}
}

func hoursOf(seconds float64) string { return strconv.FormatFloat(seconds/3600, 'f', 1, 64) }

func money(amount float64) string { return strconv.FormatFloat(amount, 'f', 2, 64) }
