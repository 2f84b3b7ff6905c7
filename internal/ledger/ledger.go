// Package ledger adds up what the pods of RayClusters cost since this process observes them: pod-seconds, GPU-seconds
// and money, by RayCluster, group, owner and cause. It gets what is seen as values with a time, and integrates between
// them. It must not ask for the time, know Kubernetes, Ray or the planner, decide what a pod costs and why it exists,
// or keep anything by the hour: what it counts only grows, and Prometheus keeps that. Its size is bounded: see Limits.
package ledger

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Cause is why the time of a pod was spent.
type Cause string

// The causes. Each moment of each part of a pod has exactly one.
const (
	// Used: work holds the resources.
	Used Cause = "used"
	// Reserved: nothing uses them, and a request or a placement group keeps them.
	Reserved Cause = "reserved"
	// Warm: a policy keeps them ready.
	Warm Cause = "warm"
	// Idle: nothing uses or keeps them; Why says what prevents their removal.
	Idle Cause = "idle"
	// Starting: the pod has not joined Ray yet.
	Starting Cause = "starting"
	// Leaving: the worker drains, or its pod ends.
	Leaving Cause = "leaving"
	// Lost: the pod has failed, or did not join Ray in time.
	Lost Cause = "lost"
	// Head: the pod is the head, whether work uses it or not.
	Head Cause = "head"
	// Unknown: the pod exists, and Ray does not answer or is not asked.
	Unknown Cause = "unknown"
	// Unobserved: the pod existed while Heliostat could not look.
	Unobserved Cause = "unobserved"
)

// Causes returns all causes, those first that are of use.
func Causes() []Cause {
	return []Cause{Used, Reserved, Warm, Idle, Starting, Leaving, Lost, Head, Unknown, Unobserved}
}

// Other is the name under which a ledger adds up groups and owners beyond its limits. No object in Kubernetes can have
// it.
const Other = "(other)"

// Account is what amounts are added up for, within a RayCluster.
type Account struct {
	Group string
	// Owner is what the time is charged to.
	Owner string
	Cause Cause
	// Why is a code that says more about the cause; empty if there is nothing to say.
	Why string
}

// Amount is what was spent.
type Amount struct {
	PodSeconds float64
	// GPUSeconds count GPUs as Ray does: a slice is as many GPUs as the worker announces for it.
	GPUSeconds float64
	// Money is in the currency of the prices.
	Money float64
	// UnpricedPodSeconds is the part of PodSeconds whose price is unknown, so that Money lacks it.
	UnpricedPodSeconds float64
}

// Plus returns the sum of both.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.PodSeconds + b.PodSeconds, a.GPUSeconds + b.GPUSeconds, a.Money + b.Money,
		a.UnpricedPodSeconds + b.UnpricedPodSeconds}
}

// times returns the amount of a rate over a time in seconds.
func (a Amount) times(seconds float64) Amount {
	return Amount{a.PodSeconds * seconds, a.GPUSeconds * seconds, a.Money * seconds, a.UnpricedPodSeconds * seconds}
}

// HeadGroup is the group of the head pod. No worker group can have its name.
const HeadGroup = "(head)"

// Pod is one pod at one moment, or the part of one that has one cause.
type Pod struct {
	Account
	// Part is the part of the pod, above 0 and at most 1. All parts of a pod add up to 1.
	Part float64
	// GPUs and Hourly are those of the part: GPUs in Ray's count, and what it costs per hour. Both are 0 before the pod
	// is bound to a node. Unpriced says that the price is unknown.
	GPUs, Hourly float64
	Unpriced     bool
}

// rate is what the part of a pod adds per second.
func (p *Pod) rate() Amount {
	a := Amount{PodSeconds: p.Part, GPUSeconds: p.GPUs, Money: p.Hourly / time.Hour.Seconds()}
	if p.Unpriced {
		a.UnpricedPodSeconds = p.Part
	}
	return a
}

func seconds(from, to time.Time) float64 { return max(to.Sub(from).Seconds(), 0) }

// Observation is all pods of a RayCluster at one moment.
type Observation struct {
	At      time.Time
	Cluster nodepool.ClusterKey
	Pods    []Pod
}

// Horizon is how long an observation holds. A longer time until the next one counts as Unobserved: a cycle makes a
// decision anew after little more than 2 min at most.
const Horizon = 5 * time.Minute

// Limits bound a ledger. Zero fields take the default named at each.
type Limits struct {
	// Accounts of one RayCluster; further ones are added up in Other. 64.
	Accounts int
	// Ended is how many RayClusters are kept that have ended: the latest. 2000.
	Ended int
}

// Ledger adds up what pods cost. Its methods are safe for concurrent use.
type Ledger struct {
	limits Limits

	mu sync.Mutex // guards all below
	// since is when the first RayCluster was observed: a replica that waits for the lease observes none.
	since    time.Time
	clusters map[nodepool.ClusterKey]*cluster
	// ended are the RayClusters that have ended, the oldest first.
	ended []nodepool.ClusterKey
}

// cluster is what is known of one RayCluster.
type cluster struct {
	// at is until when the amounts are complete; zero if the RayCluster is not observed now.
	at time.Time
	// rates are what the pods add per second since then.
	rates  []rate
	lines  []line
	streak Streak
	ended  bool
}

// rate is what all pods of one account add per second.
type rate struct {
	Account
	Amount
}

// line is what one account has spent, which only grows.
type line struct {
	Account
	Amount
}

// New returns an empty ledger.
func New(limits Limits) *Ledger {
	limits = Limits{Accounts: cmp.Or(limits.Accounts, 64), Ended: cmp.Or(limits.Ended, 2000)}
	return &Ledger{limits: limits, clusters: map[nodepool.ClusterKey]*cluster{}}
}

// Observe adds up the time since the last observation of the same RayCluster, for the pods of that one. Nothing counts
// before the first one.
func (l *Ledger) Observe(o Observation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		l.since = o.At
	}
	c := l.clusters[o.Cluster]
	if c == nil {
		c = &cluster{}
		l.clusters[o.Cluster] = c
	}
	if c.ended {
		c.ended = false
		l.ended = slices.DeleteFunc(l.ended, func(key nodepool.ClusterKey) bool { return key == o.Cluster })
	}
	switch back := c.at.Sub(o.At); {
	case back > Horizon:
		c.at = o.At // the clock was far ahead
	case back > 0:
		o.At = c.at // it was set back a little; nothing counts twice
	}
	l.charge(c, o.At)
	unseen := o.At.Sub(c.at) > Horizon
	c.setRates(o.Pods)
	c.streak.observe(c.rates, c.at, o.At, unseen)
	c.at = o.At
}

func (c *cluster) setRates(pods []Pod) {
	c.rates = c.rates[:0]
	at := -1
	for i := range pods {
		p := &pods[i]
		if at < 0 || c.rates[at].Account != p.Account {
			at = slices.IndexFunc(c.rates, func(r rate) bool { return r.Account == p.Account })
		}
		if at < 0 {
			at = len(c.rates)
			c.rates = append(c.rates, rate{Account: p.Account})
		}
		c.rates[at].Amount = c.rates[at].Plus(p.rate())
	}
}

// charge adds what the pods of the last observation have added until a moment.
func (l *Ledger) charge(c *cluster, until time.Time) {
	passed := seconds(c.at, until)
	for _, r := range c.rates {
		a := r.times(passed)
		if a == (Amount{}) {
			continue
		}
		to := r.Account
		if passed > Horizon.Seconds() {
			to = Account{Group: r.Group, Owner: r.Owner, Cause: Unobserved}
		}
		line := c.line(to, l.limits.Accounts)
		line.Amount = line.Plus(a)
	}
}

// line returns the line of an account. Beyond the limit, groups and owners become Other; causes stay apart.
func (c *cluster) line(of Account, most int) *line {
	for i := range c.lines {
		if c.lines[i].Account == of {
			return &c.lines[i]
		}
	}
	if other := (Account{Group: Other, Owner: Other, Cause: of.Cause}); len(c.lines) >= most && of != other {
		return c.line(other, most)
	}
	c.lines = append(c.lines, line{Account: of})
	return &c.lines[len(c.lines)-1]
}

// End ends a RayCluster that was deleted, or about which another process adds up from now on. What it has cost is kept.
func (l *Ledger) End(key nodepool.ClusterKey, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clusters[key]
	if c == nil || c.ended {
		return
	}
	if at.Sub(c.at) <= Horizon {
		l.charge(c, at)
	}
	c.at, c.rates, c.streak, c.ended = time.Time{}, nil, Streak{}, true
	l.ended = append(l.ended, key)
	if len(l.ended) > l.limits.Ended {
		delete(l.clusters, l.ended[0])
		l.ended = l.ended[1:]
	}
}
