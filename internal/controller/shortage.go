package controller

import (
	"cmp"
	"fmt"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// refusalSettles is how long a node autoscaler's refusal must stand before it is proof: Karpenter tries another kind of
// machine within seconds, and the Cluster Autoscaler looks every 10 s.
const refusalSettles = 5 * time.Second

// shortages finds proof that no node comes for a group's pods. All clocks are this process's own, from when it first saw
// the state:
//
//	what is seen of a pod without a node            proof
//	a node autoscaler refuses one                   after refusalSettles
//	a node autoscaler promises one                  never; AllocationTimeout decides
//	nothing is heard, and would be                  after UnschedulableGrace
//	nothing is heard, and might not be              never; AllocationTimeout decides
//
// A promise takes minutes to come true, and taking it for silence would launch everything twice. So would taking the
// silence of a node autoscaler that is not recognised for its word: it would be heard only once one has spoken before
// (Cluster.ProvisionersSeen).
type shortages struct {
	refused, silent map[string]time.Time // pod → first seen so
}

// observe takes one reading in and returns the proof by group, where there is one. members are sorted by pod.
func (s *shortages) observe(now time.Time, cluster nodepool.Cluster, members []member, config Config) map[string]string {
	refused, silent := map[string]time.Time{}, map[string]time.Time{}
	short := map[string][]string{}
	why := map[string]string{}
	for _, m := range members {
		if !unplaced(m) || m.NodePromised {
			continue
		}
		switch {
		case m.NodeRefused != "":
			refused[m.Pod] = earlier(s.refused, m.Pod, now)
			if now.Sub(refused[m.Pod]) >= refusalSettles {
				short[m.Group], why[m.Group] = append(short[m.Group], m.Pod), m.NodeRefused
			}
		case cluster.ProvisionersSeen:
			silent[m.Pod] = earlier(s.silent, m.Pod, now)
			if now.Sub(silent[m.Pod]) >= config.UnschedulableGrace {
				short[m.Group] = append(short[m.Group], m.Pod)
				why[m.Group] = cmp.Or(why[m.Group], "no node autoscaler adds one; "+m.Unschedulable)
			}
		}
	}
	s.refused, s.silent = refused, silent
	proofs := make(map[string]string, len(short))
	for group, pods := range short {
		proofs[group] = fmt.Sprintf("no node can be had for %s: %s", podsSuch(pods), why[group])
	}
	return proofs
}

// unplaced reports whether the scheduler finds no node for a pod that is waited for.
func unplaced(m member) bool {
	return m.counted() && m.Node == nil && m.Unschedulable != "" && !placed(m)
}

// placed reports whether a pod has a node.
func placed(m member) bool { return m.Worker.Node != "" || !m.ScheduledAt.IsZero() }

func podsSuch(pods []string) string {
	if len(pods) == 1 {
		return pods[0]
	}
	return fmt.Sprintf("%d pods such as %s", len(pods), pods[0])
}

// recoveryWindow is how long a group that failed stands behind its equals
// (Ray: RAY_AUTOSCALER_AVAILABILITY_RECOVERY_S, autoscaler/v2/scheduler.py of 2.60).
const recoveryWindow = 600 * time.Second

// recoverableScore is Ray's standing of a group by the age of its last failure: 0 while younger than 10 s or a tenth of
// the window, then the share of the window that has passed, at most 1.
func recoverableScore(age time.Duration) float64 {
	if age < min(10*time.Second, recoveryWindow/10) {
		return 0
	}
	return min(age.Seconds()/recoveryWindow.Seconds(), 1)
}

// standing is what the plan needs to know of a group that failed lately.
type standing struct {
	// cooling is for how long it takes no launches, reason why.
	cooling time.Duration
	reason  string
	// score is its recoverableScore; stock tells the groups that failed apart, the longest ago before the latest, by Ray's
	// cloud availability, 1 - stamp/newest stamp. Both are nil where they are 1.
	score, stock *float64
}

func (b breakers) standing(group string, now time.Time) (s standing) {
	entry := b[group]
	if entry == nil || entry.failedAt.IsZero() {
		return s
	}
	if score := recoverableScore(now.Sub(entry.failedAt)); score < 1 {
		s.score = &score
	}
	newest := entry.failedAt
	for _, other := range b {
		if other.failedAt.After(newest) {
			newest = other.failedAt
		}
	}
	stock := 1 - float64(entry.failedAt.Unix())/float64(newest.Unix())
	s.stock = &stock
	if entry.open(now) {
		s.cooling, s.reason = entry.openUntil.Sub(now), entry.reason
	}
	return s
}
