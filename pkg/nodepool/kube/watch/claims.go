package watch

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/finding"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodeobject"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// NodeClaimsForbidden says that Karpenter runs and this process may not read its NodeClaims, so it sees no node on its way.
const NodeClaimsForbidden = "nodeclaims-forbidden"

// claimClient is what is needed to follow NodeClaims.
type claimClient interface {
	List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// claimWatch follows Karpenter's NodeClaims and places the pods of all RayClusters on those that are on their way. Like nodes it
// does not belong to the caches that the manager waits for. It keeps the claims whose node is not complete alone: of thousands
// of claims these are few.
type claimWatch struct {
	client claimClient
	served func(context.Context) *bool // whether there are NodeClaims here; nil where that is not known
	log    *slog.Logger
	now    func() time.Time

	mu sync.Mutex
	// Guarded by mu. state is what is known of NodeClaims; coming are those that are not complete, by name, and incomplete the
	// names of their nodes that have registered.
	state      nodepool.NodeClaimsState
	coming     map[string]pools.NodeClaim
	incomplete map[string]bool
	// claimants are the RayClusters with pods that wait for a node, and placed what the claims hold of them since placedAt.
	// dirty: something has changed since then.
	claimants map[nodepool.ClusterKey]claimant
	placed    map[nodepool.ClusterKey]map[string]pools.Incoming
	placedAt  time.Time
	dirty     bool
	// took is how long the last placement took. All RayClusters wait for one that is made.
	took time.Duration
}

// claimant is what one RayCluster has waiting for nodes, by group, and what its pods take of nodes that are not complete.
type claimant struct {
	waiting map[string]pools.WaitingPods
	bound   map[string]podfit.Quantities
}

// placingPause is the least time between two placements because of other RayClusters' pods or of claims: a fleet that starts
// changes many times a second.
const placingPause = 200 * time.Millisecond

func newClaimWatch(client claimClient, served func(context.Context) *bool, log *slog.Logger) *claimWatch {
	c := &claimWatch{client: client, served: served, log: log, now: time.Now, claimants: map[nodepool.ClusterKey]claimant{}}
	c.clear(nodepool.NoNodeClaims)
	return c
}

// serves returns a function that asks whether the API server has a kind of a group and version; nil is unknown.
func serves(client discovery.ServerResourcesInterface, groupVersion, resource string) func(context.Context) *bool {
	return func(context.Context) *bool {
		list, err := client.ServerResourcesForGroupVersion(groupVersion)
		switch {
		case apierrors.IsNotFound(err):
			return new(bool)
		case err != nil:
			return nil
		}
		found := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource })
		return &found
	}
}

// Start reads NodeClaims until ctx ends.
func (c *claimWatch) Start(ctx context.Context) error {
	reflector.Source{
		Name: "nodeclaims", Kind: &unstructured.Unstructured{}, Watch: c.client.Watch,
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.client.List(ctx, options)
		},
		Forbidden: func(err error) { c.forbid(ctx, err) },
		Absent:    func() { c.setUnknown(nodepool.NoNodeClaims) },
		Failed:    func(err error) { c.log.Debug("nodeclaims are read again", "reason", err) },
	}.Into(ctx, c.store())
	return nil
}

// NeedLeaderElection says that a candidate for leadership knows NodeClaims too.
func (c *claimWatch) NeedLeaderElection() bool { return false }

// forbid tells a Karpenter that may not be watched from one that is not there: the API server forbids both alike.
func (c *claimWatch) forbid(ctx context.Context, err error) {
	if served := c.served(ctx); served != nil && !*served {
		c.setUnknown(nodepool.NoNodeClaims)
		return
	}
	if c.setUnknown(nodepool.NodeClaimsForbidden) {
		c.log.Info("nodeclaims are not read", "reason", err)
	}
}

// setUnknown forgets what was read, and reports whether the state is a new one.
func (c *claimWatch) setUnknown(state nodepool.NodeClaimsState) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.state
	c.clear(state)
	return before != state
}

// clear is called with mu held.
func (c *claimWatch) clear(state nodepool.NodeClaimsState) {
	c.state, c.coming, c.incomplete, c.dirty = state, map[string]pools.NodeClaim{}, map[string]bool{}, true
}

// store passes what a reflector reads to c.
func (c *claimWatch) store() *reflector.Store[*unstructured.Unstructured] {
	return &reflector.Store[*unstructured.Unstructured]{Put: c.update, Remove: c.delete, ReplaceAll: c.replace}
}

// update keeps a NodeClaim as it is now, unless its node is complete.
func (c *claimWatch) update(object *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(object)
}

// keep is called with mu held. A claim that cannot be read is no capacity that anything could rest on, nor is what it said before.
func (c *claimWatch) keep(u *unstructured.Unstructured) {
	claim, err := nodeobject.ReadNodeClaim(u)
	if err != nil {
		c.log.Debug("a nodeclaim is passed over", "reason", err)
		c.remove(u.GetName())
		return
	}
	c.dirty = true
	if claim.Initialized || claim.Deleting {
		c.remove(claim.Name)
		return
	}
	if c.coming[claim.Name] = claim; claim.Node != "" {
		c.incomplete[claim.Node] = true
	}
}

// remove is called with mu held.
func (c *claimWatch) remove(name string) {
	delete(c.incomplete, c.coming[name].Node)
	delete(c.coming, name)
	c.dirty = true
}

// delete forgets a NodeClaim.
func (c *claimWatch) delete(object *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(object.GetName())
}

// replace takes a whole list, the first one or the one after a broken watch.
func (c *claimWatch) replace(list []*unstructured.Unstructured, _ string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear(nodepool.NodeClaimsRead)
	for _, object := range list {
		c.keep(object)
	}
}

// karpenterEvents is what Karpenter's Events tell beside its NodeClaims.
type karpenterEvents interface {
	// sawKarpenter: Karpenter has said something about some pod.
	sawKarpenter() bool
	// launchFailed: the machine of a NodeClaim cannot be had. An Event says so before the claim goes.
	launchFailed(claim string) bool
}

// addTo says of each group of a cluster that was just read how many of its pods without a node the NodeClaims hold.
func (c *claimWatch) addTo(cluster *nodepool.Cluster, events karpenterEvents) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := claimantOf(cluster, c.incomplete)
	cluster.NodeClaims = c.state
	if c.state == nodepool.NoNodeClaims && events.sawKarpenter() {
		cluster.NodeClaims = nodepool.NodeClaimsForbidden // of a release that serves another version of the kind
	}
	if cluster.NodeClaims == nodepool.NodeClaimsForbidden {
		report := &finding.List{Object: "RayCluster " + cluster.Key.String()}
		report.Add(raydemand.Info, NodeClaimsForbidden, "", "",
			"this process may not list and watch Karpenter's NodeClaims, so it sees no node on its way and takes longer to find a group out of stock",
			"grant it list and watch on nodeclaims.karpenter.sh as deploy/rbac.yaml does")
		cluster.Findings = append(cluster.Findings, report.All...)
	}
	if len(own.waiting) == 0 && len(own.bound) == 0 {
		c.drop(cluster.Key)
		return
	}
	pause := max(placingPause, 10*c.took)
	if before := c.claimants[cluster.Key]; !own.equal(before) {
		if c.dirty = true; c.took < placingPause/10 {
			pause = 0
		}
	}
	c.claimants[cluster.Key] = own
	if now := c.now(); c.dirty && now.Sub(c.placedAt) >= pause {
		begun := time.Now()
		c.place(now, events)
		c.took = time.Since(begun)
	}
	for i := range cluster.Groups {
		cluster.Groups[i].Incoming = c.placed[cluster.Key][cluster.Groups[i].Name]
	}
}

// place is called with mu held.
func (c *claimWatch) place(now time.Time, events karpenterEvents) {
	claims := make([]pools.NodeClaim, 0, len(c.coming))
	for name, claim := range c.coming {
		if claim.Launched || !events.launchFailed(name) {
			claims = append(claims, claim)
		}
	}
	type entry struct {
		key   nodepool.ClusterKey
		group string
	}
	var entries []entry
	var waiting []pools.WaitingPods
	bound := map[string]podfit.Quantities{}
	for _, key := range slices.SortedFunc(maps.Keys(c.claimants), compareKeys) {
		own := c.claimants[key]
		for _, group := range slices.Sorted(maps.Keys(own.waiting)) {
			entries, waiting = append(entries, entry{key, group}), append(waiting, own.waiting[group])
		}
		for node, takes := range own.bound {
			bound[node] = bound[node].Plus(takes)
		}
	}
	c.placed = map[nodepool.ClusterKey]map[string]pools.Incoming{}
	for i, coming := range pools.PlaceOnClaims(now, claims, bound, waiting) {
		e := entries[i]
		if c.placed[e.key] == nil {
			c.placed[e.key] = map[string]pools.Incoming{}
		}
		c.placed[e.key][e.group] = coming
	}
	// While claims are on their way time alone changes what is expected of them.
	c.placedAt, c.dirty = now, len(claims) > 0
}

// forget drops what a RayCluster that is gone had waiting.
func (c *claimWatch) forget(key nodepool.ClusterKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
}

// drop is called with mu held.
func (c *claimWatch) drop(key nodepool.ClusterKey) {
	if _, known := c.claimants[key]; known {
		delete(c.claimants, key)
		delete(c.placed, key)
		c.dirty = true
	}
}
