// Package provisioning decides when all nodes of a gang are asked for at once, with a ProvisioningRequest of the
// Cluster Autoscaler: which requests to create and to delete, which launches wait for one, and which pods use its
// capacity. provisioning.go is the step of the loop that writes them. The package must not plan.
package provisioning

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

const (
	// gang is the smallest launch that asks: a single pod needs nothing at once.
	gang = 2
	// patience is how long a launch waits for its request. The request itself ends then too (ValidUntilSeconds).
	patience = 15 * time.Minute
	// booking is how long the Cluster Autoscaler keeps provisioned nodes for a request.
	booking = 10 * time.Minute
	// pause is for how long a group is launched as without requests after one that brought nothing.
	pause = 10 * time.Minute
	// calm is how long a launch must be smaller than its request before the request is deleted, and how long launches
	// wait until the requests have been read for the first time.
	calm = 10 * time.Second
)

// prefix begins the names of all requests, so that nobody else's annotation on a pod is ever removed.
const prefix = "heliostat-"

// Requests is the memory about one RayCluster. What must survive a restart is in the ProvisioningRequests.
type Requests struct {
	// smaller is since when a group launches less than its request, and waiting since when its launch waits, whatever
	// for; unread since when launches wait for the first reading; without until when a group is launched as without
	// requests, and why.
	smaller, waiting map[string]time.Time
	unread           time.Time
	without          map[string]pauseOf
}

type pauseOf struct {
	until time.Time
	why   string
	// refused: the request could not be created. It may be there all the same, if the answer was lost.
	refused bool
}

// Decision is what one cycle does about ProvisioningRequests.
type Decision struct {
	// Launch counts the pods that may be launched now, by group.
	Launch map[string]int
	// Waits says by group why its launch waits, and Without why it is launched as without a request.
	Waits, Without map[string]string
	Changes        []nodepool.ProvisioningChange
}

// Decide decides for the launches of a plan; gangs says that placement groups wait. It may be called several times in a
// cycle.
func (r *Requests) Decide(now time.Time, cluster *nodepool.Cluster, launch map[string]int, gangs bool) Decision {
	if cluster.Provisioning == nil {
		return Decision{Launch: launch}
	}
	d := Decision{Launch: maps.Clone(launch), Waits: map[string]string{}, Without: map[string]string{}}
	for i := range cluster.Groups {
		group := &cluster.Groups[i]
		// It asks, or did so before its annotation was removed.
		if group.Provisions || len(cluster.Provisioning.Of(group.Name)) > 0 {
			of := asked{r: r, d: &d, now: now, cluster: cluster, group: group, gangs: gangs}
			of.decide(launch[group.Name])
		}
	}
	maps.DeleteFunc(r.waiting, func(group string, _ time.Time) bool { return d.Waits[group] == "" })
	d.pods(cluster)
	return d
}

// HandBack takes back all requests of a RayCluster that is no longer managed.
func HandBack(cluster *nodepool.Cluster) Decision {
	var d Decision
	if cluster.Provisioning == nil {
		return d
	}
	of := asked{d: &d, cluster: cluster}
	for _, request := range cluster.Provisioning.Requests {
		of.release(request)
	}
	without := *cluster
	without.Provisioning = &nodepool.Provisioning{Unread: cluster.Provisioning.Unread}
	d.pods(&without)
	return d
}

// Refused notes that a request could not be created.
func (r *Requests) Refused(now time.Time, group string, err error) {
	r.pause(now, group, "its ProvisioningRequest cannot be created: "+err.Error())
	last := r.without[group]
	last.refused = true
	r.without[group] = last
}

func (r *Requests) pause(now time.Time, group, why string) {
	if r.without == nil {
		r.without = map[string]pauseOf{}
	}
	if last, paused := r.without[group]; !paused || !now.Before(last.until) {
		r.without[group] = pauseOf{until: now.Add(pause), why: why}
	}
}

// pods marks the pods that use a request's capacity, and no longer those whose request has none.
func (d *Decision) pods(cluster *nodepool.Cluster) {
	consumed := map[string]int{}
	for _, w := range cluster.Workers {
		if !w.Terminating && !w.Failed {
			consumed[w.Consumes]++
		}
	}
	for _, w := range cluster.Workers {
		change := nodepool.ProvisioningChange{Cluster: cluster.Key, UID: cluster.UID, Pod: w}
		switch {
		case w.Node != "" || w.Terminating || w.Failed || cluster.Provisioning.Unread != "":
		case strings.HasPrefix(w.Consumes, prefix) && !cluster.Provisioning.Provisioned(w.Consumes):
			change.Kind = nodepool.ForgetCapacity
			d.Changes = append(d.Changes, change)
		case w.Consumes == "" && !w.Gated:
			for _, request := range cluster.Provisioning.Of(w.Group) {
				if uses(w, request) && consumed[request.Name] < request.Pods {
					change.Kind, change.Request = nodepool.ConsumeCapacity, request
					d.Changes = append(d.Changes, change)
					consumed[request.Name]++
					break
				}
			}
		}
	}
}

// uses reports whether the pod was created for the request's capacity.
func uses(w nodepool.Worker, request nodepool.ProvisioningRequest) bool {
	return w.Group == request.Group && request.State == nodepool.CapacityProvisioned && !request.Deleting &&
		!w.Terminating && !w.Failed && !w.CreatedAt.Before(request.Since)
}

// asked is the decision about one group.
type asked struct {
	r       *Requests
	d       *Decision
	now     time.Time
	cluster *nodepool.Cluster
	group   *nodepool.WorkerGroup
	gangs   bool // placement groups wait
}

func (a *asked) decide(pods int) {
	name, known := a.group.Name, a.cluster.Provisioning
	if known.Unread != "" {
		a.beforeReading(pods)
		return
	}
	a.r.unread = time.Time{}
	requests := known.Of(name)
	if !a.group.Provisions || a.cluster.Queue.Queued() {
		for _, request := range requests {
			a.release(request)
		}
		if a.cluster.Queue.Queued() {
			a.without(pods, "Kueue's admission check provisioning asks for the nodes of a queued RayCluster")
		}
		return
	}
	if len(requests) == 0 {
		a.ask(pods)
		return
	}
	for _, more := range requests[1:] { // of another size, made before the first one was seen
		a.release(more)
	}
	switch request := requests[0]; {
	case request.Deleting:
		a.wait(pods, "the deletion of ProvisioningRequest "+request.Name)
	case request.State == nodepool.CapacityAsked:
		a.pending(request, pods)
	case request.State == nodepool.CapacityProvisioned:
		a.provisioned(request, pods)
	default:
		a.brought(request, pods, cmp.Or(request.Message, "the capacity is "+string(request.State)))
	}
}

// beforeReading lets launches wait until the requests have been read for the first time, so that a restart finds those
// that it made before.
func (a *asked) beforeReading(pods int) {
	if a.r.unread.IsZero() {
		a.r.unread = a.now
	}
	if a.now.Sub(a.r.unread) < calm {
		a.wait(pods, "the first reading of ProvisioningRequests: "+a.cluster.Provisioning.Unread)
		return
	}
	a.without(pods, a.cluster.Provisioning.Unread)
}

// ask creates a request for a launch that needs new nodes.
func (a *asked) ask(pods int) {
	delete(a.r.smaller, a.group.Name)
	together := a.gangs || a.group.NumOfHosts > 1 // single tasks gain nothing by waiting for each other's nodes
	if pods < gang || !together || pods <= a.room() {
		return
	}
	request := nodepool.ProvisioningRequest{
		Name: Name(a.cluster.UID, a.group.Name, pods), Group: a.group.Name, Pods: pods,
	}
	if a.wait(pods, "ProvisioningRequest "+request.Name+": it is being created") {
		a.change(nodepool.AskCapacity, request)
	}
}

// room is how many more pods fit on nodes that exist, beyond pods that wait for a node; none while the nodes are
// unknown.
func (a *asked) room() int {
	if a.group.Kind == nil {
		return 0
	}
	existing := slices.DeleteFunc(slices.Clone(a.cluster.Places), func(p landing.Place) bool { return p.New })
	room := landing.New([]landing.Pod{*a.group.Kind}, existing).Empty().Room(0)
	for _, w := range a.cluster.Workers {
		if w.Group == a.group.Name && w.Node == "" && !w.Terminating && !w.Failed {
			room--
		}
	}
	return int(max(room, 0))
}

// pending waits for the Cluster Autoscaler, but not for ever, also after a restart, and not for more than is needed.
func (a *asked) pending(request nodepool.ProvisioningRequest, pods int) {
	if a.r.without[a.group.Name].refused {
		delete(a.r.without, a.group.Name)
	}
	switch {
	case a.now.Sub(request.CreatedAt) >= patience:
		a.r.pause(a.now, a.group.Name,
			fmt.Sprintf("ProvisioningRequest %s brought no nodes within 15 minutes", request.Name))
		a.without(pods, a.r.without[a.group.Name].why)
		a.release(request)
		return
	case pods >= request.Pods:
		delete(a.r.smaller, a.group.Name)
	case a.since(&a.r.smaller) >= calm:
		a.release(request)
	}
	a.wait(pods, "ProvisioningRequest "+request.Name+": "+
		cmp.Or(request.Message, "the Cluster Autoscaler has not looked at it"))
}

// since returns for how long the group has been in the map, and adds it.
func (a *asked) since(times *map[string]time.Time) time.Duration {
	if *times == nil {
		*times = map[string]time.Time{}
	}
	if (*times)[a.group.Name].IsZero() {
		(*times)[a.group.Name] = a.now
	}
	return a.now.Sub((*times)[a.group.Name])
}

// provisioned launches what was asked for. The request is deleted when its pods have their nodes, when nobody needs
// them, or when the Cluster Autoscaler no longer keeps them.
func (a *asked) provisioned(request nodepool.ProvisioningRequest, pods int) {
	created, placed := 0, 0
	for _, w := range a.cluster.Workers {
		if uses(w, request) {
			created++
			if w.Node != "" {
				placed++
			}
		}
	}
	delete(a.r.waiting, a.group.Name)
	left := max(request.Pods-created, 0)
	if left == 0 || pods > 0 {
		delete(a.r.smaller, a.group.Name)
	}
	if placed >= request.Pods || a.now.Sub(request.Since) >= booking ||
		left > 0 && pods == 0 && created == placed && !a.expectsPods() && a.since(&a.r.smaller) >= calm {
		a.release(request)
	}
	if pods <= left {
		return
	}
	if left > 0 || pods >= gang {
		a.d.Waits[a.group.Name] = "waits for the pods of ProvisioningRequest " + request.Name + " to get their nodes"
		a.d.Launch[a.group.Name] = left
	}
}

// expectsPods reports whether the operator is still to create pods of the group.
func (a *asked) expectsPods() bool {
	pods := 0
	for _, w := range a.cluster.Workers {
		if w.Group == a.group.Name && !w.Terminating && !w.Failed {
			pods++
		}
	}
	return pods < a.group.Replicas*max(1, a.group.NumOfHosts)
}

// brought launches as without a request, because this one brought nothing, and forgets it after a pause.
func (a *asked) brought(request nodepool.ProvisioningRequest, pods int, why string) {
	a.without(pods, "ProvisioningRequest "+request.Name+": "+why)
	if a.now.Sub(request.Since) >= pause {
		a.release(request)
	}
}

// wait lets the group's launch wait. It does not wait for ever, also if the request cannot be written or deleted, or if
// each is replaced by a smaller one: then wait returns false.
func (a *asked) wait(pods int, what string) bool {
	if pods < 1 {
		return false
	}
	if a.since(&a.r.waiting) >= patience {
		a.r.pause(a.now, a.group.Name, "its launch has waited 15 minutes, at last for "+what)
	}
	if paused, known := a.r.without[a.group.Name]; known && a.now.Before(paused.until) {
		a.without(pods, paused.why)
		return false
	}
	delete(a.d.Launch, a.group.Name)
	a.d.Waits[a.group.Name] = "waits for " + what
	return true
}

// without says why a gang is launched as without a request.
func (a *asked) without(pods int, why string) {
	if pods >= gang {
		a.d.Without[a.group.Name] = why
	}
}

func (a *asked) release(request nodepool.ProvisioningRequest) {
	if !request.Deleting {
		a.change(nodepool.ReleaseCapacity, request)
	}
}

func (a *asked) change(kind string, request nodepool.ProvisioningRequest) {
	a.d.Changes = append(a.d.Changes, nodepool.ProvisioningChange{Kind: kind, Cluster: a.cluster.Key,
		UID: a.cluster.UID, Request: request})
}

// Name returns the name of the request for so many pods of a group. It is always the same, so that a process that did
// not see its own write creates no second one.
func Name(uid, group string, pods int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", uid, group, pods))
	return prefix + hex.EncodeToString(sum[:8])
}

// Forget forgets groups that are gone.
func (r *Requests) Forget(gone func(group string) bool) {
	maps.DeleteFunc(r.smaller, func(group string, _ time.Time) bool { return gone(group) })
	maps.DeleteFunc(r.without, func(group string, _ pauseOf) bool { return gone(group) })
}
