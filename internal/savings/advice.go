package savings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Kind is what a change is about.
type Kind string

// The kinds of changes.
const (
	// Manage lets Heliostat remove idle workers of a RayCluster in shadow.
	Manage Kind = "manage"
	// IdleTimeout is another idle timeout of a group.
	IdleTimeout Kind = "idle_timeout"
	// MinReplicas is a lower minimum, KeepWarm is less warm capacity.
	MinReplicas Kind = "min_replicas"
	KeepWarm    Kind = "keep_warm"
	// SmallerWorkers are workers with fewer GPUs, Slices are workers with a part of one GPU.
	SmallerWorkers Kind = "smaller_workers"
	Slices         Kind = "slices"
)

// Advice is one change and what it would have meant.
type Advice struct {
	Record
	Kind Kind
	// From and To are the setting now and after the change: seconds, replicas, workers or GPUs. From is 0 for a
	// RayCluster that is not managed.
	From, To float64
	Outcome
	// Why says what was seen, and Change is what to run or to edit.
	Why, Change string
}

// Saves returns what the change would have saved; negative if it would have cost more.
func (a *Advice) Saves() Sum { return a.Observed.Minus(a.Outcome.Cost) }

// Situation is a RayCluster and its settings now.
type Situation struct {
	Cluster *nodepool.Cluster
	Mode    nodepool.Mode
}

// Advise returns the changes to a group of a RayCluster with what they would have meant over the record, and nothing
// that would have changed nothing.
func (s Situation) Advise(r Record) []Advice {
	g, known := s.Cluster.Group(r.Group)
	if !known || g.Broken {
		return nil
	}
	var all []Advice
	if g.NumOfHosts <= 1 { // hosts of one replica go together, which is not recorded
		all = append(all, s.timeouts(r, g)...)
		all = append(all, s.minimum(r, g)...)
		all = append(all, s.warm(r, g)...)
	}
	all = append(all, s.smaller(r, g)...)
	all = append(all, s.sliced(r, g)...)
	return slices.DeleteFunc(all, func(a Advice) bool { return a.Outcome.Cost == a.Observed && a.Starts == 0 })
}

// timeouts replays other idle timeouts, or, of a RayCluster that is not managed, the one that it has.
func (s Situation) timeouts(r Record, g *nodepool.WorkerGroup) (all []Advice) {
	now := s.Cluster.IdleTimeout
	if g.IdleTimeout != nil {
		now = *g.IdleTimeout
	}
	if s.Mode != nodepool.Managed {
		if i := slices.IndexFunc(Timeouts[:], func(t time.Duration) bool { return t >= now }); i >= 0 && now > 0 {
			all = append(all, Advice{Record: r, Kind: Manage, To: Timeouts[i].Seconds(), Outcome: r.Replay(i),
				Why:    "the RayCluster is in shadow, so Heliostat removes no idle workers",
				Change: "autoscaler manage " + s.Cluster.Key.String()})
		}
		return all
	}
	for i, timeout := range Timeouts {
		if timeout == now {
			continue
		}
		a := Advice{Record: r, Kind: IdleTimeout, From: max(now.Seconds(), 0), To: timeout.Seconds(),
			Outcome: r.Replay(i)}
		t := Timeout{}
		if r.Timeouts != nil {
			t = r.Timeouts[i]
		}
		switch {
		case now <= 0 || timeout < now:
			a.Why = fmt.Sprintf("workers were idle for longer than %s for %s in total, and %.0f of them got work "+
				"afterwards", short(timeout), hours(t.Saved), t.Starts)
		default:
			a.Why = fmt.Sprintf("%.0f workers were started within %s after others had become idle and were removed",
				t.Spared, short(timeout))
		}
		a.Change = s.timeoutChange(g, int(timeout.Seconds()))
		all = append(all, a)
	}
	return all
}

// short formats a duration without zeros at its end.
func short(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}

func hours(s Sum) string { return fmt.Sprintf("%.1f worker-hours", s.PodSeconds()/time.Hour.Seconds()) }

// timeoutChange returns how to set an idle timeout. The operator refuses one of a group without version v2.
func (s Situation) timeoutChange(g *nodepool.WorkerGroup, seconds int) string {
	path := fmt.Sprintf("/spec/workerGroupSpecs/%d/", g.Index)
	switch {
	case s.owned():
		return s.edit(fmt.Sprintf("group %s: idleTimeoutSeconds: %d", g.Name, seconds))
	case g.IdleTimeout != nil:
		return s.patch(g, op{"replace", path + "idleTimeoutSeconds", seconds})
	case len(s.Cluster.Groups) == 1:
		return fmt.Sprintf(`kubectl patch raycluster %s -n %s --type=merge -p='{"spec":{"autoscalerOptions":`+
			`{"idleTimeoutSeconds":%d}}}'`, s.Cluster.Key.Name, s.Cluster.Key.Namespace, seconds)
	}
	return s.edit(fmt.Sprintf("group %s: idleTimeoutSeconds: %d; it needs autoscalerOptions.version: v2", g.Name,
		seconds))
}

// owned reports whether another object makes the RayCluster, so that a change belongs there.
func (s Situation) owned() bool { return s.Cluster.Owner.Kind != "" }

// edit returns a command that edits the object to which a change belongs.
func (s Situation) edit(what string) string {
	kind, name := "raycluster", s.Cluster.Key.Name
	if s.owned() {
		kind, name = strings.ToLower(s.Cluster.Owner.Kind), s.Cluster.Owner.Name
	}
	return fmt.Sprintf("kubectl edit %s %s -n %s # %s", kind, name, s.Cluster.Key.Namespace, what)
}

// op is one operation of a JSON patch.
type op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch returns a command that changes a group, and does nothing if the groups have another order by then.
func (s Situation) patch(g *nodepool.WorkerGroup, change op) string {
	test := op{"test", fmt.Sprintf("/spec/workerGroupSpecs/%d/groupName", g.Index), g.Name}
	text, err := json.Marshal([]op{test, change})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("kubectl patch raycluster %s -n %s --type=json -p='%s'", s.Cluster.Key.Name,
		s.Cluster.Key.Namespace, text)
}

// minimum replays lower minimums.
func (s Situation) minimum(r Record, g *nodepool.WorkerGroup) (all []Advice) {
	if r.Reserve == nil {
		return nil
	}
	for i, by := range Levels {
		if g.Min <= 0 || by != All && by >= g.Min {
			continue
		}
		to := max(g.Min-by, 0)
		a := Advice{Record: r, Kind: MinReplicas, From: float64(g.Min), To: float64(to), Outcome: r.ReplayMinimum(i)}
		a.Why = fmt.Sprintf("minReplicas alone kept these workers for %s, and %.0f times one of them got work",
			hours(r.Reserve[i].Saved), r.Reserve[i].Starts)
		a.Change = s.edit(fmt.Sprintf("group %s: minReplicas: %d", g.Name, to))
		if !s.owned() {
			a.Change = s.patch(g, op{"replace", fmt.Sprintf("/spec/workerGroupSpecs/%d/minReplicas", g.Index), to})
		}
		all = append(all, a)
	}
	return all
}

// warm replays less warm capacity of an entry that names the group.
func (s Situation) warm(r Record, g *nodepool.WorkerGroup) (all []Advice) {
	if r.Warm == nil || s.Cluster.Policy == nil {
		return nil
	}
	policy := s.Cluster.Policy.Policy
	at := slices.IndexFunc(policy.KeepWarm, func(w capacity.Warm) bool { return w.Group == g.Name })
	if at < 0 {
		return nil
	}
	entry := policy.KeepWarm[at]
	for i, by := range Levels {
		if entry.Count <= 0 || by != All && int64(by) >= entry.Count {
			continue
		}
		to := max(entry.Count-int64(by), 0)
		a := Advice{Record: r, Kind: KeepWarm, From: float64(entry.Count), To: float64(to), Outcome: r.ReplayWarm(i)}
		a.Why = fmt.Sprintf("the policy kept these workers ready for %s, and %.0f times one of them got work",
			hours(r.Warm[i].Saved), r.Warm[i].Starts)
		a.Change = policyChange(s.Cluster.Key, policy, at, to)
		all = append(all, a)
	}
	return all
}

// policyChange returns how to keep another number of workers warm.
func policyChange(key nodepool.ClusterKey, policy capacity.Policy, entry int, count int64) string {
	policy.KeepWarm = slices.Clone(policy.KeepWarm)
	policy.KeepWarm[entry].Count = count
	text, err := json.Marshal(policy)
	if err != nil || len(policy.KeepWarm[entry].Schedules) > 0 {
		return fmt.Sprintf("autoscaler policy %s # keepWarm[%d].count: %d, also in its schedules", key, entry, count)
	}
	return fmt.Sprintf("autoscaler policy %s --set '%s'", key, text)
}

// enough is which part of the time in use must fit on smaller workers.
const enough = 0.99

// smaller replays workers with a half, a quarter or an eighth of their GPUs.
func (s Situation) smaller(r Record, g *nodepool.WorkerGroup) (all []Advice) {
	var resource string
	var has int64
	for name, amount := range g.Pod.Requests {
		if strings.HasSuffix(name, ".com/gpu") && amount >= raydemand.Whole(2) {
			resource, has = name, int64(amount/raydemand.Whole(1))
		}
	}
	for _, eighths := range []int{4, 2, 1} {
		o, fits := r.ReplaySize(eighths, float64(eighths)/Eighths)
		if resource == "" || has*int64(eighths)%Eighths != 0 || fits < enough {
			continue
		}
		to := has * int64(eighths) / Eighths
		a := Advice{Record: r, Kind: SmallerWorkers, From: float64(has), To: float64(to), Outcome: o}
		a.Why = fmt.Sprintf("while in use, a worker used at most %d of its %d GPUs in %s %% of the time; the price is "+
			"assumed to follow the GPUs", to, has, percent(fits))
		a.Change = s.edit(fmt.Sprintf("group %s: %s: %d instead of %d", g.Name, resource, to, has))
		if fits < 1 {
			a.Change = s.edit(fmt.Sprintf("add a copy of group %s with %s: %d and a higher priority", g.Name,
				resource, to))
		}
		all = append(all, a)
	}
	return all
}

// percent formats a part, and says 100 only of all.
func percent(part float64) string {
	if part >= 1 {
		return "100"
	}
	return fmt.Sprintf("%.1f", min(part*100, 99.9))
}

// Sort orders advice: what saves most money first, then most GPUs, then most pods.
func Sort(all []Advice) {
	slices.SortStableFunc(all, func(a, b Advice) int {
		x, y := a.Saves(), b.Saves()
		return cmp.Or(cmp.Compare(y.Money(), x.Money()), cmp.Compare(y.GPUSeconds(), x.GPUSeconds()),
			cmp.Compare(y.PodSeconds(), x.PodSeconds()), a.Cluster.Compare(b.Cluster),
			cmp.Compare(a.Group, b.Group))
	})
}
