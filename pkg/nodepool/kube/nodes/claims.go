package nodes

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// untypedClient reads a kind whose objects are decoded one by one.
type untypedClient = reflector.Client[*unstructured.UnstructuredList]

// claimWatch watches Karpenter's NodeClaims and places the pods of all RayClusters on the nodes to come. It keeps only
// claims whose node is not complete: of thousands of claims these are few.
type claimWatch struct {
	client untypedClient
	served func(context.Context) *bool // whether the API server serves NodeClaims; nil if that is unknown
	log    *slog.Logger
	now    func() time.Time

	mu sync.Mutex
	// Guarded by mu. state is what is known of NodeClaims; coming are the incomplete ones by name, and incomplete the
	// names of their registered nodes.
	state      nodepool.NodeClaimsState
	coming     map[string]landing.NodeClaim
	incomplete map[string]bool
	// leaving is what the NodeClaims that are being deleted say, by node; leavingNode names their nodes.
	leaving     map[string]*departure.Notice
	leavingNode map[string]string
	// claimants are the RayClusters with pods that wait for a node, and placed what the claims have held of them since
	// placedAt. dirty: something has changed since then.
	claimants map[nodepool.ClusterKey]claimant
	placed    map[nodepool.ClusterKey]map[string]landing.Incoming
	placedAt  time.Time
	dirty     bool
	// took is how long the last placement took. All RayClusters wait for a placement.
	took time.Duration
}

// claimant is what one RayCluster needs: the pods that wait for nodes, by group, and what its pods take on incomplete
// nodes.
type claimant struct {
	waiting map[string]landing.WaitingPods
	bound   map[string]landing.Quantities
}

// placingPause is the least time between two placements because of other RayClusters' pods or of claims, which change
// many times a second while a fleet starts.
const placingPause = 200 * time.Millisecond

func newClaimWatch(client untypedClient, served func(context.Context) *bool, log *slog.Logger) *claimWatch {
	c := &claimWatch{
		client:    client,
		served:    served,
		log:       log,
		now:       time.Now,
		claimants: map[nodepool.ClusterKey]claimant{},
	}
	c.clear(nodepool.NoNodeClaims)
	return c
}

// Start reads NodeClaims until ctx ends.
func (c *claimWatch) Start(ctx context.Context) error {
	source := reflector.Of("nodeclaims", &unstructured.Unstructured{}, c.client, metav1.ListOptions{}, c.log)
	source.Served = c.served
	source.Forbidden = func(err error) {
		if c.setUnknown(nodepool.NodeClaimsForbidden) {
			c.log.Info("nodeclaims are forbidden", "reason", err)
		}
	}
	source.Absent = func(error) { c.setUnknown(nodepool.NoNodeClaims) }
	source.Into(ctx, c.store())
	return nil
}

// setUnknown forgets all claims, and reports whether the state changed.
func (c *claimWatch) setUnknown(state nodepool.NodeClaimsState) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.state
	c.clear(state)
	return before != state
}

// clear forgets all claims. The caller holds mu.
func (c *claimWatch) clear(state nodepool.NodeClaimsState) {
	c.state, c.coming, c.incomplete, c.dirty = state, map[string]landing.NodeClaim{}, map[string]bool{}, true
	c.leaving, c.leavingNode = nil, map[string]string{}
}

// store passes what a reflector reads to c.
func (c *claimWatch) store() *reflector.Store[*unstructured.Unstructured] {
	return &reflector.Store[*unstructured.Unstructured]{Put: c.update, Remove: c.delete, ReplaceAll: c.replace}
}

// update keeps a NodeClaim, unless its node is complete.
func (c *claimWatch) update(object *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(object)
}

// keep keeps a NodeClaim. The caller holds mu. A claim that cannot be read counts as no capacity, whatever it said
// before.
func (c *claimWatch) keep(u *unstructured.Unstructured) {
	claim, err := decode.ReadNodeClaim(u)
	if err != nil {
		c.log.Debug("ignoring a nodeclaim that cannot be read", "reason", err)
		c.remove(u.GetName())
		return
	}
	c.dirty = true
	node, notice := decode.ClaimDeparture(u)
	c.noteLeaving(claim.Name, node, notice)
	if claim.Initialized || claim.Deleting {
		c.remove(claim.Name)
		return
	}
	if claim.NodeReady {
		if claim.NodeReadyAt = c.coming[claim.Name].NodeReadyAt; claim.NodeReadyAt.IsZero() {
			claim.NodeReadyAt = c.now()
		}
	}
	if c.coming[claim.Name] = claim; claim.Node != "" {
		c.incomplete[claim.Node] = true
	}
}

// remove forgets a claim by its name. The caller holds mu.
func (c *claimWatch) remove(name string) {
	delete(c.incomplete, c.coming[name].Node)
	delete(c.coming, name)
	c.dirty = true
}

// delete forgets a NodeClaim.
func (c *claimWatch) delete(object *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteLeaving(object.GetName(), "", nil)
	c.remove(object.GetName())
}

// replace takes a whole list: the first one, or the one after a watch broke.
func (c *claimWatch) replace(list []*unstructured.Unstructured, _ string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.coming
	c.clear(nodepool.NodeClaimsRead)
	for _, object := range list {
		c.keep(object)
	}
	for name, claim := range c.coming {
		if at := before[name].NodeReadyAt; claim.NodeReady && !at.IsZero() {
			claim.NodeReadyAt = at // no condition of the claim has this moment
			c.coming[name] = claim
		}
	}
}

// addTo sets for each group how many of its pods without a node the NodeClaims hold. launchFailed reports whether
// Karpenter said that it failed to launch the machine of a NodeClaim: that comes before the claim goes.
func (c *claimWatch) addTo(cluster *nodepool.Cluster, launchFailed func(claim string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := claimantOf(cluster, c.incomplete)
	cluster.NodeClaims = c.state
	if cluster.NodeClaims == nodepool.NodeClaimsForbidden {
		cluster.Findings = append(cluster.Findings, unread(cluster.Key, NodeClaimsForbidden, ""))
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
		c.place(now, launchFailed)
		c.took = time.Since(begun)
	}
	for i := range cluster.Groups {
		cluster.Groups[i].Incoming = c.placed[cluster.Key][cluster.Groups[i].Name]
	}
}

// place assigns waiting pods to claims. The caller holds mu.
func (c *claimWatch) place(now time.Time, launchFailed func(claim string) bool) {
	claims := make([]landing.NodeClaim, 0, len(c.coming))
	for name, claim := range c.coming {
		if claim.Launched || !launchFailed(name) {
			claims = append(claims, claim)
		}
	}
	type entry struct {
		key   nodepool.ClusterKey
		group string
	}
	var entries []entry
	var waiting []landing.WaitingPods
	bound := map[string]landing.Quantities{}
	for _, key := range slices.SortedFunc(maps.Keys(c.claimants), nodepool.ClusterKey.Compare) {
		own := c.claimants[key]
		for _, group := range slices.Sorted(maps.Keys(own.waiting)) {
			entries, waiting = append(entries, entry{key, group}), append(waiting, own.waiting[group])
		}
		for node, takes := range own.bound {
			bound[node] = bound[node].Plus(takes)
		}
	}
	c.placed = map[nodepool.ClusterKey]map[string]landing.Incoming{}
	for i, coming := range landing.PlaceOnClaims(now, claims, bound, waiting) {
		e := entries[i]
		if c.placed[e.key] == nil {
			c.placed[e.key] = map[string]landing.Incoming{}
		}
		c.placed[e.key][e.group] = coming
	}
	// While there are incomplete claims, expectations change with time alone.
	c.placedAt, c.dirty = now, len(claims) > 0
}

// forget drops a RayCluster that is gone.
func (c *claimWatch) forget(key nodepool.ClusterKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
}

// drop forgets a claimant. The caller holds mu.
func (c *claimWatch) drop(key nodepool.ClusterKey) {
	if _, known := c.claimants[key]; known {
		delete(c.claimants, key)
		delete(c.placed, key)
		c.dirty = true
	}
}
