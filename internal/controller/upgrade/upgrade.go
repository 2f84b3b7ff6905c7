// Package upgrade says what room the newer RayCluster of a RayService needs while it is to replace the older one: what
// Serve wants on the older RayCluster, less what work uses or waits for on the newer one. It remembers the readings of
// one upgrade and says when the next one is due. The package must not read or call anything, and it places nothing: the
// planner does.
package upgrade

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const (
	// ReadEvery is the pause between two readings of the older RayCluster.
	ReadEvery = 10 * time.Second
	// Longest bounds how long room is kept after the newer RayCluster was created, so that an upgrade that never ends
	// does not cost money forever.
	Longest = 30 * time.Minute
	// settles is for how long nothing must be missing until the newer RayCluster counts as complete. Ray may show an
	// actor as waiting and its resources as used in the same reading.
	settles = 30 * time.Second
	// mostDeployments bounds the deployments of one reading, and their bundles; some more are remembered.
	mostDeployments = 1_000
	// mostText bounds what a finding says of what a head has answered, in bytes.
	mostText = 1_000
	// mostShapes bounds the different bundles of one upgrade: each is placed once more in each plan.
	mostShapes = 16
)

// Codes of findings.
const (
	// Warming: room is kept for an upgrade.
	Warming = "upgrade-warming"
	// Unread: Serve's applications on the older RayCluster cannot be read.
	Unread = "upgrade-unread"
	// Overdue: the upgrade takes longer than Longest, so no room is kept any more.
	Overdue = "upgrade-overdue"
	// Unused: the policy asks for room, and nothing can be upgraded.
	Unused = "upgrade-unused"
)

// Need is room for a number of equal bundles.
type Need struct {
	Bundle    raydemand.Bundle
	Selectors []raydemand.Selector
	Count     int64
}

// key is equal for needs of equal bundles.
func (n *Need) key() string { return fmt.Sprintf("%v %v", n.Bundle, n.Selectors) }

// Needs returns what the replicas of all deployments request, the largest bundles first. Bundles that must be on one
// node (STRICT_PACK) are one bundle; others each count by themselves, on whichever nodes.
func Needs(deployments []raydemand.Deployment) (all []Need) {
	for i := range deployments {
		d := &deployments[i]
		bundles := d.Bundles
		if d.Strategy == raydemand.StrictPack {
			whole := raydemand.Bundle{}
			for _, b := range bundles {
				whole.Add(b)
			}
			bundles = []raydemand.Bundle{whole}
		}
		for _, b := range bundles {
			if d.Replicas > 0 && !b.IsZero() {
				all = append(all, Need{Bundle: b, Selectors: d.Selectors, Count: d.Replicas})
			}
		}
	}
	return merged(all)
}

// merged adds up equal bundles and sorts: by GPUs, memory and CPUs, and then in any fixed order.
func merged(needs []Need) []Need {
	counts, one := map[string]int64{}, map[string]Need{}
	for i := range needs {
		key := needs[i].key()
		counts[key] += needs[i].Count
		one[key] = needs[i]
	}
	keys := slices.SortedFunc(maps.Keys(one), func(a, b string) int {
		for _, name := range []string{raydemand.GPU, raydemand.Memory, raydemand.CPU} {
			if c := cmp.Compare(one[b].Bundle[name], one[a].Bundle[name]); c != 0 {
				return c
			}
		}
		return strings.Compare(a, b)
	})
	all := make([]Need, len(keys))
	for i, key := range keys {
		all[i] = one[key]
		all[i].Count = counts[key]
	}
	return all
}

// Missing returns the needs without what is held already. held counts by amounts, for the largest bundles first: which
// replica holds what is not known, and all of them together hold as much.
func Missing(needs []Need, held raydemand.Bundle) (missing []Need) {
	left := raydemand.Bundle{}
	left.Add(held)
	for _, n := range needs {
		has := n.Count
		for name, amount := range n.Bundle {
			if amount > 0 && !strings.HasPrefix(name, raydemand.ImplicitPrefix) { // which no node reports
				has = min(has, int64(max(0, left[name])/amount))
			}
		}
		for name, amount := range n.Bundle {
			if has > 0 {
				left[name] -= amount.Times(has)
			}
		}
		if n.Count -= has; n.Count > 0 {
			missing = append(missing, n)
		}
	}
	return missing
}

// Held returns what the work of a RayCluster holds of its nodes, the head too, and what it waits for.
func Held(state *raydemand.State) raydemand.Bundle {
	held := raydemand.Bundle{}
	for i := range state.Nodes {
		n := &state.Nodes[i]
		if n.Status == raydemand.Dead {
			continue
		}
		for name, total := range n.Total {
			if used := total - n.Available[name]; used > 0 {
				held[name] = held[name].Plus(used)
			}
		}
	}
	for _, r := range state.Demand.Requests {
		for name, amount := range r.Bundle {
			held[name] = held[name].Plus(amount.Times(r.Count))
		}
	}
	for i := range state.Demand.Gangs {
		for _, bundle := range state.Demand.Gangs[i].Bundles {
			held.Add(bundle)
		}
	}
	return held
}

// Tracker remembers one upgrade. Its zero value knows none.
type Tracker struct {
	from nodepool.ClusterKey
	// ends is when no room is kept any more.
	ends time.Time
	// off: the policy does not ask for room now, or there is nothing to replace.
	off bool
	// most are the deployments of the older RayCluster, each as it was read last, with the most replicas that it was to
	// have: an incremental upgrade takes its targets down step by step. needs is what they request, missing what of
	// that the newer RayCluster lacks.
	most           map[deploymentKey]raydemand.Deployment
	needs, missing []Need
	// asked is when the last reading began, read when the last one succeeded; err is why the last one failed.
	asked, read time.Time
	err         error
	// coveredSince is since when nothing has been missing; done: that has lasted.
	coveredSince time.Time
	done         bool
}

type deploymentKey struct{ app, name string }

// Observe takes a new view of the newer RayCluster. live: Ray answered, with this state.
func (t *Tracker) Observe(now time.Time, cluster *nodepool.Cluster, live bool, state *raydemand.State) {
	from := cluster.UpgradeFrom
	if t.off = from == nil || !cluster.Policy.MatchesUpgrades(); t.off {
		return // what is known stays: both may come back
	}
	if t.from != *from {
		began := cluster.CreatedAt
		if began.IsZero() {
			began = now
		}
		*t = Tracker{from: *from, ends: began.Add(Longest)}
	}
	held := raydemand.Bundle{}
	if live {
		held = Held(state)
	}
	t.missing = Missing(t.needs, held)
	switch {
	case !live || len(t.needs) == 0 || len(t.missing) > 0:
		t.coveredSince = time.Time{}
	case t.coveredSince.IsZero():
		t.coveredSince = now
	case now.Sub(t.coveredSince) >= settles:
		t.done = true
	}
}

// Active reports whether an upgrade is under way for which room may be kept.
func (t *Tracker) Active(now time.Time) bool {
	return t.from != (nodepool.ClusterKey{}) && !t.off && !t.done && now.Before(t.ends)
}

// Due returns the RayCluster that is to be read now; nil if none is.
func (t *Tracker) Due(now time.Time) *nodepool.ClusterKey {
	if !t.Active(now) || now.Sub(t.asked) < ReadEvery {
		return nil
	}
	from := t.from
	return &from
}

// Asked notes that a reading begins.
func (t *Tracker) Asked(now time.Time) { t.asked = now }

// Read takes the result of a reading. One that failed leaves what is known.
func (t *Tracker) Read(now time.Time, from nodepool.ClusterKey, deployments []raydemand.Deployment, err error) {
	if from != t.from {
		return // of an earlier upgrade
	}
	if t.err = err; err != nil {
		return
	}
	t.read = now
	bundles := 0
	for _, d := range t.most {
		bundles += len(d.Bundles)
	}
	if t.most == nil || len(t.most) > 2*mostDeployments || bundles > 2*mostDeployments {
		t.most = map[deploymentKey]raydemand.Deployment{}
	}
	for _, d := range deployments {
		key := deploymentKey{d.App, d.Name}
		d.Replicas = max(d.Replicas, t.most[key].Replicas)
		t.most[key] = d
	}
	t.needs = Needs(slices.Collect(maps.Values(t.most)))
}

// Entries returns the room that is to be kept now.
func (t *Tracker) Entries(now time.Time) (all []planner.WarmEntry) {
	if !t.Active(now) {
		return nil
	}
	for i, n := range t.missing {
		if i == mostShapes {
			break
		}
		all = append(all, planner.WarmEntry{Name: fmt.Sprintf("onUpgrade[%d]", i), Resources: n.Bundle,
			Selectors: n.Selectors, Count: min(n.Count, capacity.MaxCount),
			Upgrade: fmt.Sprintf("it is to serve as RayCluster %s does, until %s", t.from.Name, until(t.ends))})
	}
	return all
}

func until(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }

// Findings says what becomes of the room for an upgrade.
func (t *Tracker) Findings(now time.Time, cluster *nodepool.Cluster) (all []raydemand.Finding) {
	if !cluster.Policy.MatchesUpgrades() {
		return nil
	}
	add := func(severity raydemand.Severity, code, object, seen, why, fix string) {
		all = append(all, raydemand.Finding{Code: code, Severity: severity, Object: object, Field: "onUpgrade",
			Seen: fieldpath.Excerpt(seen, mostText), Why: fieldpath.Excerpt(why, mostText), Fix: fix})
	}
	object := "RayCluster " + cluster.Key.String()
	switch {
	case cluster.Owner.Kind != "RayService":
		add(raydemand.Warning, Unused, cluster.Policy.Source, capacity.UpgradeMatch,
			"no RayService owns the RayCluster, so no upgrade creates another one, and no room is kept",
			"set the annotation on the RayService, or remove the field")
	case t.from == (nodepool.ClusterKey{}) || t.off || t.done:
	case !now.Before(t.ends):
		if len(t.missing) > 0 {
			add(raydemand.Warning, Overdue, object, texts(t.missing), fmt.Sprintf("the upgrade from RayCluster %s has "+
				"taken more than %s, so no room is kept for the replicas that are missing", t.from.Name,
				planner.Span(Longest.Seconds())),
				"look at the status of the RayService: why do its replicas not start?")
		}
	default:
		if t.err != nil {
			known := "no room is kept for the upgrade"
			if !t.read.IsZero() {
				known = "what was read before counts"
			}
			add(raydemand.Warning, Unread, "RayCluster "+t.from.String(), "", fmt.Sprintf("%v; %s", t.err, known),
				"let Heliostat reach the dashboard of the head: its port, its token and its NetworkPolicies")
		}
		if len(t.missing) > 0 {
			add(raydemand.Info, Warming, object, texts(t.missing), fmt.Sprintf("it is to serve as RayCluster %s does: "+
				"room for the replicas that are still to come is kept until they are there, and at most until %s",
				t.from.Name, until(t.ends)), "nothing; onUpgrade: none switches it off")
		}
	}
	return all
}

// texts lists needs: 4 × {CPU 1, GPU 1}, 2 × {CPU 1}.
func texts(needs []Need) string {
	var all []string
	for i, n := range needs {
		if i == mostShapes {
			all = append(all, fmt.Sprintf("and %d other bundles, for which no room is kept", len(needs)-i))
			break
		}
		all = append(all, fmt.Sprintf("%d × %v", n.Count, n.Bundle))
	}
	return strings.Join(all, ", ")
}
