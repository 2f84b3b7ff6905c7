package observe

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const (
	// quotaPatience is how long Kueue may take to look at a Workload, and the operator to create the pods that are to
	// be named. In a StrictFIFO queue Kueue never looks at a Workload behind another one.
	quotaPatience = time.Second
	// preemptionPatience is how long Kueue may take to evict other work. Evicted pods have 30 s by default.
	preemptionPatience = time.Minute
	// shortestPause is for how long a group asks for fewer than were refused; each refusal after it doubles it, up to
	// longestPause. longestPause without a refusal resets it.
	shortestPause = 30 * time.Second
	longestPause  = 10 * time.Minute
	// explainedPause is the pause if the headroom of the ClusterQueue explains the refusal: that is then the limit, and
	// it is at most this old.
	explainedPause = 2 * time.Second
)

// QuotaRefusals remembers what Kueue refused one queued RayCluster: which of its waiting pods to take back, and how
// many pods of each group to ask for in the meantime. Kueue admits the growth of all groups together or none of it,
// never a part, and it never gives up (docs/howto/kueue.md). Its zero value knows of no refusal.
type QuotaRefusals struct {
	// version is what Kueue last held back, since when, and whether limits follow from it already.
	version  string
	since    time.Time
	answered bool
	limits   map[string]quotaLimit
	back     map[string]bool
}

// quotaLimit is how many pods of a group to ask for.
type quotaLimit struct {
	pods int
	// refused is how many Kueue refused.
	refused int
	until   time.Time
	pause   time.Duration
	why     string
	// version is what Kueue held back when the limit began.
	version string
}

// groupDemand counts the pods of a group: all that replicas counts, and those of them that wait without quota.
type groupDemand struct {
	group    string
	hosts    int
	pods     int
	waiting  []Member
	covered  int // pods that have quota or do not wait
	possible int // waiting pods that may get quota
}

// Observe adds one reading. A refusal is about the groups as they are: while Kueue has not seen the latest replicas, or
// a requested pod does not exist and so cannot be named, nothing is taken back.
func (r *QuotaRefusals) Observe(now time.Time, cluster nodepool.Cluster, members []Member) {
	r.back = nil
	quota := cluster.Queue.Quota
	if quota == nil || quota.Pending == nil || cluster.Suspended {
		r.version = ""
		if quota != nil && !cluster.Suspended {
			r.raise(now, demandOf(cluster, members))
		}
		return
	}
	if quota.Pending.Version != r.version {
		r.version, r.since, r.answered = quota.Pending.Version, now, false
	}
	groups := demandOf(cluster, members)
	if !r.refused(now, cluster, groups) {
		return
	}
	if !r.answered {
		r.answered = true
		r.limit(now, quota, groups)
	}
	r.takeBack(now, groups)
}

// refused reports whether Kueue refuses what is requested now.
func (r *QuotaRefusals) refused(now time.Time, cluster nodepool.Cluster, groups []groupDemand) bool {
	pending, waited := cluster.Queue.Quota.Pending, now.Sub(r.since)
	missing := false
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		if pending.Pods[g.Name] != g.Replicas*max(1, g.NumOfHosts) {
			return false
		}
		missing = missing || groups[i].pods < GoalPods(*g)
	}
	switch {
	case pending.Preempting:
		return waited >= preemptionPatience
	case missing || !pending.Judged || pending.Message == "":
		return waited >= quotaPatience
	}
	return true
}

// demandOf returns the demand of each group, in the order of the groups.
func demandOf(cluster nodepool.Cluster, members []Member) []groupDemand {
	groups := make([]groupDemand, len(cluster.Groups))
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		d := groupDemand{group: g.Name, hosts: max(1, g.NumOfHosts)}
		for _, m := range members {
			if m.Group == g.Name && m.Counted() {
				d.pods++
				if m.Gated {
					d.waiting = append(d.waiting, m)
				}
			}
		}
		// Those that waited longest come first, and hosts of one replica together.
		slices.SortFunc(d.waiting, func(a, b Member) int {
			return cmp.Or(
				a.CreatedAt.Compare(b.CreatedAt),
				strings.Compare(a.Replica, b.Replica),
				strings.Compare(a.Pod, b.Pod),
			)
		})
		d.covered = min(max(cluster.Queue.Quota.Granted[g.Name], d.pods-len(d.waiting)), d.pods)
		groups[i] = d
	}
	return groups
}

// limit decides how many pods each group may ask for. What the headroom allows is asked for at once. If the headroom is
// unknown, or does not explain the refusal, half of what waits is tried, and raise goes on from there.
func (r *QuotaRefusals) limit(now time.Time, quota *nodepool.Quota, groups []groupDemand) {
	explained := fitQuota(quota.Bounds, groups)
	for i := range groups {
		d := &groups[i]
		extra := d.pods - d.covered
		if extra == 0 {
			continue
		}
		if !explained {
			d.possible = extra / 2
		}
		d.possible -= d.possible % d.hosts
		next := quotaLimit{pods: d.covered + d.possible, refused: d.pods, why: quota.Pending.Message,
			version: r.version}
		next.pause = r.nextPause(now, d.group, quota.Unbounded == "" && len(quota.Bounds) > 0)
		if explained {
			next.pause = explainedPause
		}
		if next.why == "" {
			next.why = "Kueue has not looked at Workload " + quota.Pending.Name +
				", for example because others are before it"
		}
		next.until = now.Add(next.pause)
		if r.limits == nil {
			r.limits = map[string]quotaLimit{}
		}
		r.limits[d.group] = next
	}
}

// raise lets a group whose pods all have quota ask for more: half of what is between them and what was refused. So a
// few Workloads, as many as the logarithm of what was refused, find what Kueue grants.
func (r *QuotaRefusals) raise(now time.Time, groups []groupDemand) {
	for _, d := range groups {
		limit, limited := r.limits[d.group]
		if !limited || !now.Before(limit.until) || len(d.waiting) > 0 || d.pods < limit.pods {
			continue
		}
		// Pods may have got quota in another way, for example because a user scaled the group.
		if limit.pods = max(limit.pods, d.covered); limit.pods >= limit.refused {
			delete(r.limits, d.group)
			continue
		}
		more := (limit.refused - limit.pods) / 2
		limit.pods += more - more%d.hosts
		r.limits[d.group] = limit
	}
}

// fitQuota finds how many waiting pods of each group the bounds allow together. It reports whether that is fewer than
// wait.
func fitQuota(bounds []landing.Quota, groups []groupDemand) bool {
	pods, short := map[string]int{}, false
	for _, d := range groups {
		pods[d.group] = d.covered
	}
	for i := range groups {
		d := &groups[i]
		room := math.MaxInt
		for k := range bounds {
			room = min(room, roomIn(&bounds[k], d.group, pods))
		}
		d.possible = min(room, d.pods-d.covered)
		d.possible -= d.possible % d.hosts
		pods[d.group] += d.possible
		short = short || pods[d.group] < d.pods
	}
	return short
}

// nextPause returns the pause after another refusal of a group. It is the same while raise searches. A headroom that is
// known and does not explain the refusal is most likely a second old, so the first pause is short.
func (r *QuotaRefusals) nextPause(now time.Time, group string, headroomKnown bool) time.Duration {
	shortest := shortestPause
	if headroomKnown {
		shortest = explainedPause
	}
	last, known := r.limits[group]
	switch {
	case !known || now.Sub(last.until) >= longestPause:
		return shortest
	case now.Before(last.until):
		return last.pause
	}
	return min(max(2*last.pause, shortest), longestPause)
}

// takeBack chooses the waiting pods beyond the limits: those that were created last. A limit that is over counts only
// as long as Kueue holds back what it is about: the patch may be late, and a later refusal may be about another group.
func (r *QuotaRefusals) takeBack(now time.Time, groups []groupDemand) {
	r.back = map[string]bool{}
	for _, d := range groups {
		limit, limited := r.limits[d.group]
		if !limited || limit.version != r.version && !now.Before(limit.until) {
			continue
		}
		surplus := min(max(d.pods-limit.pods, 0), len(d.waiting))
		for _, m := range d.waiting[len(d.waiting)-surplus:] {
			r.back[m.Pod] = true
		}
	}
}

// TakenBack reports whether a waiting pod is to be taken back: Kueue refuses it, and holds back all others for it.
func (r *QuotaRefusals) TakenBack(pod string) bool { return r.back[pod] }

// Bounds returns how many pods of each group to ask for, with Kueue's message.
func (r *QuotaRefusals) Bounds(now time.Time) []landing.Quota {
	var bounds []landing.Quota
	for _, group := range slices.Sorted(maps.Keys(r.limits)) {
		if limit := r.limits[group]; now.Before(limit.until) {
			bounds = append(bounds, landing.Quota{
				Name: "what Kueue granted", Resource: "pods", Amount: raydemand.Whole(int64(limit.pods)),
				PodTakes: map[string]raydemand.Amount{group: raydemand.One}, Why: "Kueue: " + limit.why,
			})
		}
	}
	return bounds
}

// Forget forgets groups that are gone.
func (r *QuotaRefusals) Forget(gone func(group string) bool) {
	maps.DeleteFunc(r.limits, func(group string, _ quotaLimit) bool { return gone(group) })
}

// roomIn returns how many more pods of a group fit into a quota, with the given numbers of pods of all groups.
func roomIn(q *landing.Quota, group string, pods map[string]int) int {
	takes := q.PodTakes[group]
	if takes <= 0 {
		return nodepool.NoMaximum
	}
	left := q.Amount
	for other, takes := range q.PodTakes {
		left = left.Plus(-takes.Times(int64(pods[other])))
	}
	return int(max(left, 0) / takes)
}
