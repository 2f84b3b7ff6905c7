// Package ledger adds up what the pods of RayClusters cost: pod-seconds, GPU-seconds and money, by RayCluster,
// group, owner and cause. It gets what is seen as values with a time, and integrates between them. It must not ask for
// the time, know Kubernetes, Ray or the planner, or decide what a pod costs and why it exists. Its size is bounded: see
// Limits.
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
	// Unobserved: the pod existed while no Heliostat looked.
	Unobserved Cause = "unobserved"
)

// Causes returns all causes, those first that are of use.
func Causes() []Cause {
	return []Cause{Used, Reserved, Warm, Idle, Starting, Leaving, Lost, Head, Unknown, Unobserved}
}

// Valid reports whether c is a known cause.
func (c Cause) Valid() bool { return slices.Contains(Causes(), c) }

// Other is the name under which a ledger adds up what is beyond its limits: clusters, namespaces, groups and owners. No
// object in Kubernetes can have it.
const Other = "(other)"

// Account is what amounts are added up for, within a RayCluster.
type Account struct {
	Group string
	// Owner is what the time is charged to.
	Owner string
	// Job is the Ray job that used it; empty if jobs are not read, or of another cause than Used.
	Job   string
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
	// Pod is its name.
	Pod string
	Account
	// Part is the part of the pod, above 0 and at most 1. All parts of a pod add up to 1.
	Part float64
	// GPUs and Hourly are those of the part: GPUs in Ray's count, and what it costs per hour. Both are 0 before the pod
	// is bound to a node. Unpriced says that the price is unknown.
	GPUs, Hourly float64
	Unpriced     bool
	// Created and Bound are when the pod was created, and when it got its node; zero if unknown.
	Created, Bound time.Time
}

// Rate is what the part of a pod adds per second.
func (p *Pod) Rate() Amount {
	a := Amount{PodSeconds: p.Part, GPUSeconds: p.GPUs, Money: p.Hourly / time.Hour.Seconds()}
	if p.Unpriced {
		a.UnpricedPodSeconds = p.Part
	}
	return a
}

// since returns what the part of a pod has added from a moment until now: its existence from its creation, and its
// GPUs and money from its node on.
func (p *Pod) since(from, now time.Time) Amount {
	bound := p.Bound
	if bound.IsZero() {
		bound = p.Created
	}
	rate := p.Rate()
	exists := rate.times(seconds(later(from, p.Created), now))
	runs := rate.times(seconds(later(from, bound), now))
	exists.GPUSeconds, exists.Money = runs.GPUSeconds, runs.Money
	return exists
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
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
// decision anew after 30 s at most.
const Horizon = 5 * time.Minute

// Retention is for how long a ledger keeps what was spent, unless its Limits say otherwise.
const Retention = 30 * 24 * time.Hour

// Limits bound a ledger. Zero fields take the default named at each.
type Limits struct {
	// Accounts of one RayCluster; further ones are added up in Other. 64. Half of them may be of jobs: further jobs are
	// added up in Other, those first that have used nothing for the longest time.
	Accounts int
	// Clusters is how many RayClusters are kept apart, and at least those that exist and half as many. Those that have
	// ended first are added up in Other of their namespace, and if each had a namespace of its own, in Other of
	// namespace Other. 4000.
	Clusters int
	// Hours is for how long amounts are kept by hour, Days for how long by day. 48 and 30.
	Hours, Days int
}

func (l Limits) withDefaults() Limits {
	return Limits{Accounts: cmp.Or(l.Accounts, 64), Clusters: cmp.Or(l.Clusters, 4000), Hours: cmp.Or(l.Hours, 48),
		Days: cmp.Or(l.Days, int(Retention.Hours())/24)}
}

// Ledger adds up what pods cost. Its methods are safe for concurrent use.
type Ledger struct {
	limits Limits

	began time.Time

	mu       sync.Mutex // guards all below
	clusters map[nodepool.ClusterKey]*account
	// expired is when amounts were last dropped that are too old.
	expired time.Time
	// left is how many RayClusters there were after makeRoom.
	left int
}

// account is what is known of one RayCluster.
type account struct {
	// at is until when the amounts are complete; fresh says that the RayCluster has not been observed.
	at    time.Time
	fresh bool
	// rates are what the pods add per second since then.
	rates []rate
	// gone is when the RayCluster was found deleted; zero while it exists.
	gone   time.Time
	lines  []line
	streak Streak
	totals map[Cause]Amount
}

// rate is what all pods of one account add per second.
type rate struct {
	Account
	Amount
}

// New returns a ledger that begins at a moment.
func New(began time.Time, limits Limits) *Ledger {
	return &Ledger{limits: limits.withDefaults(), began: began,
		clusters: map[nodepool.ClusterKey]*account{}}
}

// Observe adds up the time since the last observation of the same RayCluster.
func (l *Ledger) Observe(o Observation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(o.At)
	c := l.clusters[o.Cluster]
	if c == nil {
		c = &account{totals: map[Cause]Amount{}, at: l.began, fresh: true}
		l.clusters[o.Cluster] = c
		l.makeRoom()
	}
	c.gone = time.Time{}
	switch back := c.at.Sub(o.At); {
	case back > Horizon:
		c.at = o.At // the clock was far ahead
	case back > 0:
		o.At = c.at // it was set back a little; nothing counts twice
	}
	unseen := c.fresh || o.At.Sub(c.at) > Horizon
	if !unseen {
		l.chargeRates(c, o.At)
	}
	for i := range o.Pods {
		p := &o.Pods[i]
		from := later(c.at, p.Created)
		switch {
		case unseen && (!c.fresh || o.At.Sub(from) > Horizon):
			l.charge(c, Account{Group: p.Group, Owner: p.Owner, Cause: Unobserved}, p.since(c.at, o.At), from, o.At)
		case unseen:
			l.charge(c, p.Account, p.since(c.at, o.At), from, o.At)
		case p.Created.After(c.at) || p.Bound.After(c.at):
			l.charge(c, p.Account, p.missed(c.at, o.At), from, o.At)
		}
	}
	c.setRates(o.Pods)
	c.streak.observe(c.rates, c.at, o.At, unseen)
	c.at, c.fresh = o.At, false
}

// missed returns what a pod added between two observations of which only the second saw it, or saw it on its node.
func (p *Pod) missed(before, now time.Time) Amount {
	a := p.since(before, now)
	if !p.Created.After(before) {
		a.PodSeconds, a.UnpricedPodSeconds = 0, 0
	}
	if !p.Bound.After(before) && !p.Created.After(before) {
		a.GPUSeconds, a.Money = 0, 0
	}
	return a
}

func (c *account) setRates(pods []Pod) {
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
		c.rates[at].Amount = c.rates[at].Plus(p.Rate())
	}
}

// chargeRates adds what the pods of the last observation have added until a moment.
func (l *Ledger) chargeRates(c *account, until time.Time) {
	passed := seconds(c.at, until)
	for _, r := range c.rates {
		l.charge(c, r.Account, r.times(passed), c.at, until)
	}
}

// charge adds an amount to an account of a RayCluster, evenly over a time.
func (l *Ledger) charge(c *account, to Account, a Amount, from, until time.Time) {
	if a == (Amount{}) {
		return
	}
	c.totals[to.Cause] = c.totals[to.Cause].Plus(a)
	c.line(to, l.limits.Accounts).add(a, secondOf(from), secondOf(until), l.limits)
}

// Forget ends a RayCluster that was deleted. What it has cost is kept.
func (l *Ledger) Forget(key nodepool.ClusterKey, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clusters[key]
	if c == nil {
		return
	}
	if at.Sub(c.at) <= Horizon {
		l.chargeRates(c, at)
	}
	c.at, c.rates, c.gone, c.streak = later(c.at, at), nil, at, Streak{}
}

// Release drops a RayCluster about which another process adds up from now on.
func (l *Ledger) Release(key nodepool.ClusterKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clusters, key)
}

// expire drops what is too old, and RayClusters that have ended and of which nothing is kept, once an hour.
func (l *Ledger) expire(now time.Time) {
	if now.Sub(l.expired) < time.Hour {
		return
	}
	l.expired = now
	for key, c := range l.clusters {
		for i := range c.lines {
			c.lines[i].age(secondOf(now), l.limits)
		}
		c.lines = slices.DeleteFunc(c.lines, func(l line) bool { return len(l.buckets) == 0 })
		if len(c.lines) == 0 && !c.gone.IsZero() {
			delete(l.clusters, key)
		}
	}
}

// Used returns how much of the bound of its RayClusters is in use, from 0 to 1.
func (l *Ledger) Used() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(float64(len(l.clusters))/float64(l.limits.Clusters), 1) // those that exist are kept beyond it
}

// makeRoom adds up RayClusters that have ended until nine tenths of the limit are left, or half of the limit beside
// those that exist. The oldest come first: in Other of their namespace where several have ended, and then, where only
// one is left, in Other of namespace Other. It looks at all RayClusters, so it does nothing until a tenth of the limit
// more have come.
func (l *Ledger) makeRoom() {
	limit := l.limits.Clusters
	if len(l.clusters) <= max(limit, l.left+limit/10) {
		return
	}
	gone := l.allEnded()
	most := max(limit*9/10, len(l.clusters)-len(gone)+limit/2)
	endedIn := map[string]int{}
	for _, e := range gone {
		endedIn[e.key.Namespace]++
	}
	for _, e := range gone {
		if len(l.clusters) > most && e.key.Name != Other && endedIn[e.key.Namespace] > 1 {
			l.absorb(nodepool.ClusterKey{Namespace: e.key.Namespace, Name: Other}, e)
		}
	}
	if len(l.clusters) > most {
		gone = l.allEnded()
		for _, e := range gone[:min(len(gone), len(l.clusters)-most+1)] { // Other may be new
			l.absorb(nodepool.ClusterKey{Namespace: Other, Name: Other}, e)
		}
	}
	l.left = len(l.clusters)
}

// ending is a RayCluster that has ended, and when.
type ending struct {
	key nodepool.ClusterKey
	at  time.Time
}

// allEnded returns the RayClusters that have ended, and each Other of one namespace, the oldest first.
func (l *Ledger) allEnded() (gone []ending) {
	for key, c := range l.clusters {
		if !c.gone.IsZero() && key.Namespace != Other {
			gone = append(gone, ending{key, c.gone})
		}
	}
	slices.SortFunc(gone, func(a, b ending) int {
		return cmp.Or(a.at.Compare(b.at), a.key.Compare(b.key))
	})
	return gone
}

// absorb adds what a RayCluster has cost to an Other, without the names of its groups, and of owners and jobs if that
// is of namespace Other: in several namespaces they may have one name.
func (l *Ledger) absorb(into nodepool.ClusterKey, e ending) {
	from, sum := l.clusters[e.key], l.clusters[into]
	if sum == nil {
		sum = &account{totals: map[Cause]Amount{}}
		l.clusters[into] = sum
	}
	for i := range from.lines {
		to := from.lines[i].Account
		to.Group = Other
		if into.Namespace == Other {
			to.Owner = Other
		}
		if into.Namespace == Other && to.Job != "" {
			to.Job = Other
		}
		sum.line(to, l.limits.Accounts).absorb(&from.lines[i])
	}
	for cause, a := range from.totals {
		sum.totals[cause] = sum.totals[cause].Plus(a)
	}
	sum.gone, sum.at = later(sum.gone, e.at), later(sum.at, e.at)
	delete(l.clusters, e.key)
}
