package verdict

import (
	"fmt"
	"slices"
	"time"
)

// Rule is an assertion. Its value says what must not happen.
type Rule string

// The rules.
const (
	BusyRemoved   Rule = "a busy worker was removed"
	OutOfBounds   Rule = "replicas are outside of the limits of their group"
	InFlight      Rule = "more pods are on their way than --max-in-flight allows"
	LaunchedTwice Rule = "more workers were launched than there was work for"
	Unserved      Rule = "work waits although its group may grow"
	Superfluous   Rule = "idle workers stay beyond the minimum"
	NoFixedPoint  Rule = "something is written while nothing changes"
	Memory        Rule = "the memory is not bounded"
	Untouchable   Rule = "a RayCluster in shadow was written"
	Ended         Rule = "the process ended by itself"
)

// Rules are all rules.
var Rules = []Rule{BusyRemoved, OutOfBounds, InFlight, LaunchedTwice, Unserved, Superfluous, NoFixedPoint, Memory,
	Untouchable, Ended}

// Violation is a rule that was broken.
type Violation struct {
	At      time.Time
	Rule    Rule
	Cluster string
	Detail  string
}

// String is one line.
func (v Violation) String() string {
	where := v.Cluster
	if where != "" {
		where = " of " + where
	}
	return fmt.Sprintf("%s %s%s: %s", v.At.UTC().Format("15:04:05.000"), v.Rule, where, v.Detail)
}

// Bounds are what a run permits.
type Bounds struct {
	// Manager is Heliostat's field manager. Shadow are the RayClusters that it must not write.
	Manager string
	Shadow  []string
	// MaxInFlight is Heliostat's flag of that name.
	MaxInFlight int64
	// Lag is how old the state may be on which a launch was decided, until it is seen here.
	Lag time.Duration
	// Memory is the most that Heliostat may have resident, in bytes. At rest, it may have half more than at the first
	// rest, and Slack.
	Memory, Slack int64
}

// Judge finds violations in a history. It keeps as much of the history as the bounds need.
type Judge struct {
	bounds     Bounds
	phase      PhaseName
	clusters   map[string]*cluster
	violations []Violation
	hindrances []Hindered
	standstill Standstill // the last one
	firstRest  int64
	counts     Counts
}

// Counts says how much was judged, so that a run in which nothing happened does not count as a proof. BusyEnds are the
// Ends with work. MachineEnds are those of them without a decision: the machine disappeared, or the storage went back.
type Counts struct {
	Launches, Reductions, Ends, BusyEnds, MachineEnds, Writes, Rests int
}

// New returns a judge without a history.
func New(bounds Bounds) *Judge {
	return &Judge{bounds: bounds, clusters: map[string]*cluster{}}
}

// See judges a fact.
func (j *Judge) See(fact Fact) {
	switch f := fact.(type) {
	case Spec:
		j.spec(f)
	case State:
		j.state(f)
	case Answer:
		c := j.cluster(f.Cluster)
		c.remember(f.At, c.withSpent(f.Demand), f.Alive, j.bounds.Lag)
	case End:
		j.end(f)
	case Hindered:
		j.hinder(f)
	case Standstill:
		j.standstill = f
	case Limited:
		j.cluster(f.Cluster).lowered[f.Group] = f.At
	case Write:
		j.write(f)
	case Usage:
		j.usage(f)
	case Crash:
		j.fail(f.At, Ended, "", "%s", f.Log)
	case Phase:
		j.begin(f)
	case Restored:
		for _, c := range j.clusters {
			c.restore(f.At)
		}
	}
}

// Violations returns all violations until now.
func (j *Judge) Violations() []Violation { return slices.Clone(j.violations) }

// Counts returns how much was judged until now.
func (j *Judge) Counts() Counts { return j.counts }

func (j *Judge) fail(at time.Time, rule Rule, cluster, format string, values ...any) {
	detail := fmt.Sprintf(format, values...)
	j.violations = append(j.violations, Violation{At: at, Rule: rule, Cluster: cluster, Detail: detail})
}

func (j *Judge) cluster(name string) *cluster {
	if j.clusters[name] == nil {
		j.clusters[name] = &cluster{name: name, groups: map[string]Group{}, named: map[string]naming{},
			lowered: map[string]time.Time{}, joined: map[string]time.Time{}, left: map[string]time.Time{},
			busySince: map[string]time.Time{},
			reported:  map[string]bool{}}
	}
	return j.clusters[name]
}

// begin starts a phase. At the begin of a rest, the latest states are judged once more, in case no head is read again.
func (j *Judge) begin(p Phase) {
	j.phase = p.Name
	for _, c := range j.clusters {
		clear(c.reported)
		j.settleRaises(p.At, c)
	}
	if p.Name != Rest {
		return
	}
	j.counts.Rests++
	for _, c := range j.clusters {
		j.settled(p.At, c)
	}
}

// write judges that nothing is written at rest.
func (j *Judge) write(w Write) {
	j.counts.Writes++
	if j.phase == Rest {
		j.fail(w.At, NoFixedPoint, w.Name, "%s of %s, answered with %s", w.Verb, w.Resource, w.Answer)
	}
}

// usage judges the memory.
func (j *Judge) usage(u Usage) {
	if u.Bytes > j.bounds.Memory {
		j.fail(u.At, Memory, "", "%d MiB are resident, at most %d", u.Bytes>>20, j.bounds.Memory>>20)
	}
	if j.phase != Rest {
		return
	}
	if j.firstRest == 0 {
		j.firstRest = u.Bytes
	}
	if most := j.firstRest*3/2 + j.bounds.Slack; u.Bytes > most {
		j.fail(u.At, Memory, "", "%d MiB are resident at rest, after %d at the first rest: at most %d", u.Bytes>>20,
			j.firstRest>>20, most>>20)
	}
}
