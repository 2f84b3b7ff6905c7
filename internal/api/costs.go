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
	if err := s.incomplete(); err != nil {
		s.answers.Fail(c, err)
		return
	}
	now := s.Now()
	rows := s.Costs.Rows(now)
	rows = slices.DeleteFunc(rows, func(r ledger.Row) bool {
		return params.Namespace != "" && r.Cluster.Namespace != params.Namespace
	})
	rows, err := visible(s, c, rows, func(r ledger.Row) string { return r.Cluster.Namespace })
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	by := cmp.Or(params.By, apiv1.CostsByCluster)
	s.answers.JSON(c, http.StatusOK, apiv1.Costs{
		Since: s.Costs.Since(now).UTC(), Until: now.UTC(), By: by, Currency: s.Currency,
		Idle: s.idleParts(rows, now), Items: costItems(rows, by),
	})
}

// costItems adds up rows by what is asked, and by cause.
func costItems(rows []ledger.Row, by apiv1.CostsBy) []apiv1.CostItem {
	sums := make([]ledger.Row, len(rows))
	for i, r := range rows {
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
		sums[i] = r
	}
	items := []apiv1.CostItem{}
	for _, r := range ledger.Joined(sums) {
		items = append(items, apiv1.CostItem{
			Namespace: r.Cluster.Namespace, Cluster: r.Cluster.Name, Group: r.Group, Owner: r.Owner,
			Cause: string(r.Cause), Why: r.Why, PodSeconds: r.PodSeconds, GpuSeconds: r.GPUSeconds,
			Cost: r.Money, UnpricedPodSeconds: r.UnpricedPodSeconds,
		})
	}
	return items
}

// idleParts returns the RayClusters of the rows in which something is idle now, the most expensive first.
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
	slices.SortStableFunc(parts, func(a, b apiv1.CostIdle) int { return cmp.Compare(b.Cost, a.Cost) })
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
