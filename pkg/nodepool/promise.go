package nodepool

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// Promise is pods of a worker group that are on their way and on no node yet. Promises are shared and must not be
// changed.
type Promise struct {
	RayCluster ClusterKey
	// Name is RayCluster as a text, made once: decisions about all others keep it.
	Name  string
	Group string
	Pods  int64
	// Shape is shared and must not be changed. Class is its class; promises of an unknown class share nothing.
	Shape *landing.PodShape
	Class landing.Key
	// Pod is what one of them takes of Places; Places accept it by its name. Promises of equal pods have the same one,
	// under the name of the first.
	Pod *landing.Pod
}

// PromiseOf returns a promise of pods of a group.
func PromiseOf(key ClusterKey, group *WorkerGroup, pods int64) *Promise {
	return promiseOf(key, group.Name, pods, &group.Pod)
}

func promiseOf(key ClusterKey, group string, pods int64, shape *landing.PodShape) *Promise {
	return &Promise{RayCluster: key, Name: key.String(), Group: group, Pods: pods, Shape: shape,
		Class: landing.KeyOf(shape)}
}

// andOthers is the name of a promise of several RayClusters.
const andOthers = "others"

// TheHead is the name of the head in promises.
const TheHead = "the head"

// HeadPromise returns the promise of a head that has no node yet: the operator creates it before workers, and it takes
// its part of a node and its devices before they do. It returns false for one that is on a node or does not exist.
func (c *Cluster) HeadPromise() (*Promise, bool) {
	if c.Head.Pod == "" || c.Head.Node != "" || c.Head.Shape == nil {
		return nil, false
	}
	return promiseOf(c.Key, TheHead, 1, c.Head.Shape), true
}

// Promise sets the pods of other RayClusters that come first on the same nodes, and the own head: Places then say where
// they may be scheduled. It does nothing while the nodes are unknown.
func (c *Cluster) Promise(promises []*Promise) {
	if head, waits := c.HeadPromise(); waits {
		others := slices.DeleteFunc(slices.Clone(promises), func(p *Promise) bool {
			return p.RayCluster == c.Key && p.Group == TheHead
		})
		promises = append([]*Promise{head}, others...)
	}
	if c.Stock != nil && len(promises) > 0 {
		c.place(promises)
	}
}

// Free sets Places to what they would be if pods that take so much of their nodes, by the name of the node, were gone.
// It does nothing while the nodes are unknown.
func (c *Cluster) Free(gone map[string][]landing.Quantities) {
	if c.Stock != nil {
		c.Stock, c.Groups = c.Stock.Freed(gone), slices.Clone(c.Groups)
		c.place(c.Promised)
	}
}

// place sets Places, and the promises in front of the own pods.
func (c *Cluster) place(promises []*Promise) {
	kinds := make([]landing.Kind, 0, len(c.Groups)+1)
	alike := !slices.ContainsFunc(promises, func(p *Promise) bool { return !c.Stock.Unconstrained(p.Shape) })
	for i := range c.Groups {
		kinds = append(kinds, c.Stock.KindOf(c.Groups[i].Name, &c.Groups[i].Pod))
		alike = alike && c.Stock.Unconstrained(&c.Groups[i].Pod)
	}
	kindOf, first := make([]int, len(promises)), map[landing.Key]int{} // most promises of a fleet have a few shapes
	for i := range promises {
		p := promises[i]
		at, known := first[p.Class]
		if known && alike {
			kindOf[i] = at
			continue
		}
		var kind landing.Kind
		if known {
			kind = kinds[at]
		} else {
			kind = c.Stock.KindOf("", p.Shape)
		}
		kind.Name, kind.Shape, kind.Class = p.Name+"/"+p.Group, p.Shape, p.Class
		if !known && p.Class != (landing.Key{}) {
			first[p.Class] = len(kinds)
		}
		kindOf[i], kinds = len(kinds), append(kinds, kind)
	}
	kinds, like := c.Stock.Ask(kinds).Merge(len(c.Groups))
	places, pods := c.Stock.Places(kinds)
	c.Places, c.Promised = places, make([]*Promise, 0, min(len(promises), namedPromises+1))
	for i := range c.Groups {
		c.Groups[i].Kind = &pods[i]
	}
	for i, p := range promises {
		c.promised(p, &pods[like[kindOf[i]]])
	}
}

// namedPromises is how many promises keep the name of their RayCluster. What a fleet has on its way does not make the
// decision about each RayCluster larger.
const namedPromises = 32

// promised adds a promise. Equal pods of one RayCluster are added up, and after namedPromises those of several that
// follow one another.
func (c *Cluster) promised(p *Promise, pod *landing.Pod) {
	if n := len(c.Promised); n > namedPromises && c.Promised[n-1].Pod.Name == pod.Name {
		last := c.Promised[n-1]
		last.Pods, last.Name = last.Pods+p.Pods, andOthers
		return
	}
	for i := len(c.Promised) - 1; i >= 0 && c.Promised[i].RayCluster == p.RayCluster; i-- {
		if c.Promised[i].Pod.Name == pod.Name {
			c.Promised[i].Pods += p.Pods
			return
		}
	}
	own := *p
	own.Pod = pod
	c.Promised = append(c.Promised, &own)
}
