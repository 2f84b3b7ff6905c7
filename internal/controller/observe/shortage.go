package observe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// How long a node autoscaler's refusal must stand before it is proof (docs/reference/facts.md#karpenter-rounds).
const (
	// refusalSettles is for the Cluster Autoscaler and similar ones, which check every 10 s and report each time.
	refusalSettles = 5 * time.Second
	// karpenterRound is the longest time until Karpenter has checked its pods again: every 10 s, and then it collects
	// pods for up to 10 s. What it refuses or cannot launch in one round it may launch in the next, from another
	// NodePool or the same.
	karpenterRound = 21 * time.Second
	// karpenterLooksAgain is the time until it has checked again if it has nothing to collect: 10 s and 1 s, and time
	// to see the NodeClaims that follow.
	karpenterLooksAgain = 13 * time.Second
	// unseenSettles is for Karpenter if its NodeClaims cannot be read. It repeats itself about a pod only after 2 min.
	unseenSettles = 2*time.Minute + karpenterRound
)

// Shortages finds proof that no node comes for a group's pods. All times are measured by this process, from when it
// first saw the state:
//
//	state of a pod without a node                   proof
//	a NodeClaim on its way has room for it          never; AllocationTimeout decides
//	a node autoscaler refuses it                    after settles
//	a node autoscaler promises one                  never; AllocationTimeout decides
//	no report, and there would be one               after grace
//	no report, and there may be none                never; AllocationTimeout decides
//
// A promise takes minutes to be kept. If it counted as silence, everything would be launched twice. The same holds for
// the silence of a node autoscaler that Heliostat does not recognize, so silence counts only after one has reported
// before (Cluster.ProvisionersSeen).
//
// Karpenter's Events about a pod do not decide about that pod: it drops most of its Events when there are many, and
// whichever pod is first gets a node. So the room in its NodeClaims is counted, and as many pods count as having a
// node on its way, whatever the Events say. If NodeClaims can be read, a promise without a claim counts as silence. If
// they cannot be read, silence is no proof.
type Shortages struct {
	// clocks are since when something counts against a pod while no NodeClaim has room for it.
	clocks map[string]shortageClock
	// Coming are the pods that have a node on its way.
	Coming map[string]bool
}

// shortageClock is since when a node autoscaler has refused a pod, or says nothing of it.
type shortageClock struct {
	since   time.Time
	refused bool
}

// Observe adds one reading and returns the proof by group. members are sorted by pod. grace is how long a pod may have
// no node, without a node autoscaler announcing one, before that proves that its group is out of stock.
func (s *Shortages) Observe(
	now time.Time, cluster nodepool.Cluster, members []Member, grace time.Duration,
) map[string]string {
	next := Shortages{clocks: map[string]shortageClock{}, Coming: s.podsComing(cluster, members)}
	pods, whys := map[string][]string{}, map[string]string{}
	for _, m := range members {
		if !Unplaced(m) || next.Coming[m.Pod] {
			continue
		}
		if why := s.judge(&next, now, cluster, m, grace); why != "" {
			pods[m.Group] = append(pods[m.Group], m.Pod)
			whys[m.Group] = cmp.Or(m.NodeRefused, whys[m.Group], why)
		}
	}
	*s = next
	for group, why := range whys {
		whys[group] = fmt.Sprintf("no node is available for %s: %s", podsSuch(pods[group]), why)
	}
	return whys
}

// judge runs the clock of one pod without a node on its way, and returns why no node comes for it once that is proven.
func (s *Shortages) judge(
	next *Shortages, now time.Time, cluster nodepool.Cluster, m Member, grace time.Duration,
) (why string) {
	seen := cluster.NodeClaims == nodepool.NodeClaimsRead
	least, why := settles(m, seen), m.NodeRefused
	switch {
	case m.NodePromised && !(m.ByKarpenter && seen):
		return ""
	case m.NodeRefused != "":
	case cluster.ProvisionersSeen && cluster.NodeClaims != nodepool.NodeClaimsForbidden:
		least, why = grace, "no node autoscaler adds a node; "+m.Unschedulable
		if seen {
			least = max(least, karpenterRound)
		}
	default:
		return ""
	}
	clock, runs := s.clocks[m.Pod]
	if refused := m.NodeRefused != ""; !runs || clock.refused != refused {
		clock = shortageClock{now, refused}
	}
	next.clocks[m.Pod] = clock
	if now.Sub(clock.since) < least {
		return ""
	}
	return why
}

// settles returns how long a refusal must stand. If Karpenter requested a machine for a pod before it refused the pod,
// the refusal is from a later round.
func settles(m Member, seen bool) time.Duration {
	switch {
	case !m.ByKarpenter:
		return refusalSettles
	case !seen:
		return unseenSettles
	case m.RefusedAfterLaunch:
		return karpenterLooksAgain
	}
	return karpenterRound
}

// podsComing chooses as many pods of each group as NodeClaims have room for: those with a promised node first, those
// refused for longest last.
func (s *Shortages) podsComing(cluster nodepool.Cluster, members []Member) map[string]bool {
	waiting := map[string][]Member{}
	for _, m := range members {
		if Unplaced(m) {
			waiting[m.Group] = append(waiting[m.Group], m)
		}
	}
	coming := map[string]bool{}
	for _, g := range cluster.Groups {
		pods := waiting[g.Name]
		slices.SortStableFunc(pods, func(a, b Member) int {
			return cmp.Or(cmp.Compare(reportRank(a), reportRank(b)), s.byClock(a, b))
		})
		for _, m := range pods[:min(len(pods), g.Incoming.Pods())] {
			coming[m.Pod] = true
		}
	}
	return coming
}

// byClock puts pods without a running clock first, then the latest before the earliest, so that the clocks of pods
// without a node on its way continue.
func (s *Shortages) byClock(a, b Member) int {
	left, right := s.clocks[a.Pod].since, s.clocks[b.Pod].since
	if left.IsZero() || right.IsZero() {
		return left.Compare(right)
	}
	return right.Compare(left)
}

// reportRank orders pods by the latest report about them.
func reportRank(m Member) int {
	switch {
	case m.NodePromised:
		return 0
	case m.NodeRefused == "":
		return 1
	}
	return 2
}

func podsSuch(pods []string) string {
	if len(pods) == 1 {
		return pods[0]
	}
	return fmt.Sprintf("%d pods, for example %s", len(pods), pods[0])
}

// recoveryWindow is how long a group that failed ranks below its equals (Ray: RAY_AUTOSCALER_AVAILABILITY_RECOVERY_S,
// autoscaler/v2/scheduler.py of 2.60).
const recoveryWindow = 600 * time.Second

// recoverableScore is Ray's score of a group by the age of its last failure: 0 while younger than 10 s or a tenth of
// the window, then the share of the window that has passed, at most 1.
func recoverableScore(age time.Duration) float64 {
	if age < min(10*time.Second, recoveryWindow/10) {
		return 0
	}
	return min(age.Seconds()/recoveryWindow.Seconds(), 1)
}

// Rank says of a group that failed recently how it ranks among others: by the score of recoverableScore and, the
// longest ago first, by Ray's formula of the stock, 1 - stamp/newest stamp. It closes the group while its breaker is
// open.
func (b Breakers) Rank(group *planner.Group, now time.Time) {
	entry := b[group.Name]
	if entry == nil || entry.failedAt.IsZero() {
		return
	}
	if score := recoverableScore(now.Sub(entry.failedAt)); score < 1 {
		group.RecoverableScore = &score
	}
	newest := entry.failedAt
	for _, other := range b {
		if other.failedAt.After(newest) {
			newest = other.failedAt
		}
	}
	stock := 1 - float64(entry.failedAt.Unix())/float64(newest.Unix())
	group.CloudAvailability = &stock
	if group.Closed == "" && entry.Open(now) {
		group.Closed, group.CoolingSeconds = entry.Reason, entry.OpenUntil.Sub(now).Seconds()
	}
}
