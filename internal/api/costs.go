package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// ListCosts serves GET /v1/costs.
func (s *server) ListCosts(c *gin.Context, params apiv1.ListCostsParams) {
	now := s.Now()
	rows := s.Costs.Rows(now)
	rows = slices.DeleteFunc(rows, func(r ledger.Row) bool {
		return params.Namespace != "" && r.Cluster.Namespace != params.Namespace
	})
	rows, others, err := listed[apiv1.Costs](s, c, rows, func(r ledger.Row) string { return r.Cluster.Namespace })
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	by := cmp.Or(params.By, apiv1.CostsByCluster)
	sum := apiv1.Costs{
		Since: s.Costs.Since(now).UTC(), Until: now.UTC(), By: by, Currency: s.Currency,
		Idle: s.idleParts(rows, now), Items: costItems(rows, by),
	}
	for _, more := range others {
		if more.Since.After(sum.Since) { // all count since the latest of their times
			sum.Since = more.Since
		}
		sum.Items, sum.Idle = append(sum.Items, more.Items...), append(sum.Idle, more.Idle...)
	}
	sum.Items = summedCosts(sum.Items)
	slices.SortStableFunc(sum.Idle, func(a, b apiv1.CostIdle) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Cluster, b.Cluster))
	})
	s.answers.JSON(c, http.StatusOK, sum)
}

// costItems returns what each row is about, as asked.
func costItems(rows []ledger.Row, by apiv1.CostsBy) []apiv1.CostItem {
	var items []apiv1.CostItem
	for _, r := range rows {
		switch by {
		case apiv1.CostsByCluster:
			r.Group, r.Owner = "", ""
		case apiv1.CostsByGroup:
			r.Owner = ""
		case apiv1.CostsByOwner:
			r.Cluster.Name, r.Group = "", ""
		default:
			r.Cluster, r.Group, r.Owner = nodepool.ClusterKey{}, "", ""
		}
		items = append(items, apiv1.CostItem{
			Namespace: r.Cluster.Namespace, Cluster: r.Cluster.Name, Group: r.Group, Owner: r.Owner,
			Cause: string(r.Cause), Why: r.Why, PodSeconds: r.PodSeconds, GpuSeconds: r.GPUSeconds,
			Cost: r.Money, UnpricedPodSeconds: r.UnpricedPodSeconds,
		})
	}
	return items
}

// summedCosts sorts items, and adds up those of the same. An owner can have RayClusters in several shards.
func summedCosts(items []apiv1.CostItem) []apiv1.CostItem {
	compare := func(a, b apiv1.CostItem) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Cluster, b.Cluster),
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Owner, b.Owner),
			cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Why, b.Why))
	}
	slices.SortStableFunc(items, compare)
	sums := []apiv1.CostItem{}
	for _, item := range items {
		if n := len(sums); n > 0 && compare(sums[n-1], item) == 0 {
			last := &sums[n-1]
			last.PodSeconds += item.PodSeconds
			last.GpuSeconds += item.GpuSeconds
			last.Cost += item.Cost
			last.UnpricedPodSeconds += item.UnpricedPodSeconds
			continue
		}
		sums = append(sums, item)
	}
	return sums
}

// idleParts returns the RayClusters of the rows in which something is idle now.
func (s *server) idleParts(rows []ledger.Row, now time.Time) []apiv1.CostIdle {
	parts := []apiv1.CostIdle{}
	for i, r := range rows { // sorted by RayCluster
		if i > 0 && rows[i-1].Cluster == r.Cluster {
			continue
		}
		streak := s.Costs.Idle(r.Cluster, now)
		if streak.Since.IsZero() {
			continue
		}
		parts = append(parts, apiv1.CostIdle{
			Namespace: r.Cluster.Namespace, Cluster: r.Cluster.Name, Group: streak.Group, Owner: streak.Owner,
			Why: streak.Why, Gpus: streak.GPUs, AllGpus: streak.AllGPUs, Pods: streak.Pods, AllPods: streak.AllPods,
			Since: streak.Since.UTC(), Cost: streak.Money,
			Message: idleMessage(&streak, s.Currency, now),
			Command: fmt.Sprintf("autoscaler explain %s --group %s", r.Cluster, streak.Group),
		})
	}
	return parts
}

// idleMessage says what is idle, what that has cost, and the code of the reason (docs/reference/reasons.md).
func idleMessage(s *ledger.Streak, currency string, now time.Time) string {
	idle, all, what := s.GPUs, s.AllGPUs, "GPUs"
	if s.AllGPUs == 0 {
		idle, all, what = s.Pods, s.AllPods, "workers"
	}
	text := fmt.Sprintf("%s of %s %s are idle", short(idle), short(all), what)
	span := planner.Span(now.Sub(s.Since).Seconds())
	if s.Money >= 0.005 {
		text += fmt.Sprintf("; idle %s have cost %.2f %s in %s", what, s.Money, currency, span)
	} else {
		text += ", the first for " + span
	}
	return text + " (" + s.Why + ")"
}

// short formats a number with at most one decimal.
func short(n float64) string { return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0") }
