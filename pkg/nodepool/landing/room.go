package landing

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// MaxPrice bounds every price per hour, of a node or of a pod. A higher price is a mistake; below it, sums of prices
// are exact enough to compare.
const MaxPrice = 1e9

// Config is the user's configuration of pools: nodes do not show prices, and a pool without nodes shows nothing.
type Config struct {
	Pools []Spec
	// Complete says that these pools and those of existing nodes are all that there are: no other pool can get a node.
	Complete bool
	// InstancePrices are prices per hour of a node, by instance type, for pools without a price of their own.
	// SpotPrices are those of nodes that the cloud can reclaim.
	InstancePrices, SpotPrices map[string]float64
	// Currency is that of all prices; empty means the default of package price.
	Currency string
}

// Spec is the configuration of one pool. Unset fields are nil.
type Spec struct {
	Name               string
	MinNodes, MaxNodes *int64
	// Price is the price of one node per hour, in the currency of all other prices.
	Price *float64
	Spot  *bool
	// Shape describes a new node of the pool. Its Declared is set, and its name is the pool's.
	Shape *sharing.NodeObject
	// Allocatable has all resources of Shape, including cpu and memory.
	Allocatable Quantities
}

// ceiling returns the configured bounds on the pool's size; they take precedence over what was read from the cluster.
func (s Spec) ceiling() (Ceiling, bool) {
	return Ceiling{Group: s.Name, MinNodes: s.MinNodes, MaxNodes: s.MaxNodes,
		Source: "configuration"}, s.MinNodes != nil || s.MaxNodes != nil
}

// node returns the declared shape as a Node; false if none is declared.
func (s Spec) node(reader sharing.Reader) (Node, bool) {
	if s.Shape == nil {
		return Node{}, false
	}
	read := reader.Read(*s.Shape)
	labels := s.Shape.Labels
	if _, set := labels[reader.PoolLabel]; reader.PoolLabel != "" && !set {
		labels = map[string]string{reader.PoolLabel: s.Name}
		maps.Copy(labels, s.Shape.Labels)
	}
	return Node{
		Name: s.Name, Declared: true, Ready: true, Labels: labels, Taints: s.Shape.Taints,
		Allocatable: s.Allocatable, GPUs: &read,
	}, true
}

// Shapes returns the declared shapes of all pools, to append to the nodes for placing pods.
func (c Config) Shapes(reader sharing.Reader) []Node {
	var nodes []Node
	for _, spec := range c.Pools {
		if node, declared := spec.node(reader); declared {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// Room is a node pool with what its autoscaler may still add. An unknown bound is nil and means no bound: a pending pod
// may still make the pool grow.
type Room struct {
	// Pool is the pool's name; empty for all nodes that no label assigns to a pool.
	Pool string `json:"name"`
	// Source is where the bounds come from: cluster-autoscaler, karpenter or configuration; empty if there are none.
	Source string `json:"source,omitempty"`
	// Nodes is the number of existing nodes. Cordoned and unready nodes count, as they do for the pool's autoscaler.
	// Nodes that the autoscaler requested and that have not registered do not count, so that a pod waiting for one is
	// not counted a second time by its node.
	Nodes    int64  `json:"nodes"`
	MinNodes *int64 `json:"minNodes"`
	MaxNodes *int64 `json:"maxNodes"`
	// MayAddNodes is MaxNodes less Nodes, never below 0.
	MayAddNodes *int64 `json:"mayAddNodes"`
	// Limits bound the total of all nodes of the pool (Karpenter). Used is the capacity of Nodes in the limited
	// resources.
	Limits Quantities `json:"limits,omitempty"`
	Used   Quantities `json:"used,omitempty"`
	// Mixed: added nodes may differ in size from the existing ones, as with Karpenter.
	Mixed bool `json:"mixed,omitempty"`
	// Template describes every node that will be added, if it is known.
	Template *NodeTemplate `json:"-"`
}

// PoolPods is how many pods of one worker group a pool holds, and how many more it could hold. All values but Bound
// assume empty nodes. They are therefore totals for the group, and no pod counts twice, whether it is running, pending,
// or yet to be created.
type PoolPods struct {
	Pool string `json:"pool"`
	// PerNode is how many pods fit on an empty node that the pool adds, by its declared shape or the smallest node on
	// which one fits: requests are compared with what the node announces for pods, and parts of cards with each card.
	// Pods of DaemonSets are unknown. It is 0 if there is neither such a node nor a shape.
	PerNode int64 `json:"perNode"`
	// Holds is how many pods would fit on all existing nodes if they were empty and had come up. A cordoned node counts
	// with the pods of the group that are bound to it.
	Holds int64 `json:"holds"`
	// Bound is the number of pods of this group that are bound to a node of the pool and have neither failed nor are
	// being deleted.
	Bound int64 `json:"bound"`
	// MayAddNodes is the pool's. MayAddPods is how many pods fit on the nodes that may still be added. nil means
	// unknown, and therefore no bound.
	MayAddNodes *int64 `json:"mayAddNodes"`
	MayAddPods  *int64 `json:"mayAddPods"`
}

// Most returns how many pods of the group the pool can have in total, existing ones included; false if there is no
// bound.
func (p PoolPods) Most() (pods int64, bounded bool) {
	if p.MayAddPods == nil {
		return 0, false
	}
	// An existing pod has its place, whatever has been read about its node since.
	return max(p.Holds, p.Bound) + *p.MayAddPods, true
}

// Rooms returns all pools that have or can get a node, by name: the pools of the nodes, of the configuration, and of
// other ceilings. A configured ceiling takes precedence over that of the pool's autoscaler.
func Rooms(nodes []Node, config Config, ceilings []Ceiling) []Room {
	rooms := map[string]*Room{}
	for i := range nodes {
		node := &nodes[i]
		if node.Declared {
			continue
		}
		room := roomNamed(rooms, node.Pool)
		room.Nodes++
		room.Mixed = room.Mixed || node.Labels[karpenterPool] != ""
		room.Used = room.Used.Add(node.Capacity)
	}
	for _, spec := range config.Pools {
		roomNamed(rooms, spec.Name)
	}
	names := slices.Sorted(maps.Keys(rooms))
	for pool, ceiling := range ceilingsOf(names, ceilings) {
		rooms[pool].bound(ceiling)
	}
	for _, ceiling := range ceilings {
		if _, known := poolNamed(ceiling.Group, names); !known {
			roomNamed(rooms, ceiling.Group).bound(ceiling)
		}
	}
	for _, spec := range config.Pools {
		if ceiling, said := spec.ceiling(); said {
			room := rooms[spec.Name]
			ceiling.Limits, ceiling.Template = room.Limits, room.Template
			room.bound(ceiling)
		}
	}
	if room := rooms[""]; room != nil && config.Complete {
		// All pools are declared, so nobody adds nodes that are in no pool.
		room.MaxNodes = new(room.Nodes)
	}
	list := make([]Room, 0, len(rooms))
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		list = append(list, *rooms[name].finished())
	}
	return list
}

func roomNamed(rooms map[string]*Room, name string) *Room {
	if rooms[name] == nil {
		rooms[name] = &Room{Pool: name}
	}
	return rooms[name]
}

func (r *Room) bound(ceiling Ceiling) {
	r.Source, r.Limits, r.Template = ceiling.Source, ceiling.Limits, ceiling.Template
	r.MinNodes, r.MaxNodes = ceiling.MinNodes, ceiling.MaxNodes
	r.Mixed = r.Mixed || ceiling.Source == FromKarpenter
}

// finished keeps Used only for limited resources.
func (r *Room) finished() *Room {
	if r.MaxNodes != nil {
		r.MayAddNodes = new(max(*r.MaxNodes-r.Nodes, 0))
	}
	used := Quantities{}
	for name := range r.Limits {
		used[name] = r.Used[name]
	}
	if r.Used = used; len(used) == 0 {
		r.Used = nil
	}
	return r
}

// elsewhere reports whether the template's nodeSelector names a pool other than this one, which has no node to compare.
func (r *Room) elsewhere(p *PodShape) bool {
	if r.Source == FromKarpenter || r.Mixed {
		for key, value := range p.Selector {
			if ofAnotherPool(key) || key == karpenterPool && value != r.Pool {
				return true
			}
		}
		return false
	}
	return namesPool(r.Pool) && slices.ContainsFunc(sharing.PoolLabels, func(row sharing.PoolLabel) bool {
		value, set := p.Selector[row.Key]
		_, same := poolNamed(r.Pool, []string{value})
		return set && !same
	})
}

// Ceiling is how far the autoscaler of a node pool may change its size. An unknown bound is nil and means no bound: a
// pending pod may still make the pool grow.
type Ceiling struct {
	// Group is the autoscaler's name for the pool: a scale set, an instance group or a NodePool.
	Group string `json:"group"`
	// MinNodes and MaxNodes count nodes.
	MinNodes *int64 `json:"minNodes"`
	MaxNodes *int64 `json:"maxNodes"`
	// Replicas is how many nodes a static NodePool keeps (Karpenter, spec.replicas): they exist whether pods are
	// waiting or not, and no node is added for a pod. It is nil for all other pools.
	Replicas *int64 `json:"replicas,omitempty"`
	// Limits bound the total of all nodes of the pool, by resource (Karpenter); empty if there are none.
	Limits Quantities `json:"limits,omitempty"`
	// Source is where the ceiling comes from: cluster-autoscaler, karpenter or configuration.
	Source string `json:"source"`
	// Template describes every node that the autoscaler adds; nil if it does not publish one.
	Template *NodeTemplate `json:"-"`
}

// The Source of a Ceiling, as the node autoscaler names itself in Events. FromKarpenter is a NodePool, whose nodes may
// be of any size.
const (
	FromKarpenter         = "karpenter"
	FromClusterAutoscaler = "cluster-autoscaler"
)

// groupForms are the clouds' forms of node group names. The first subexpression is the pool.
var groupForms = []struct {
	form   *regexp.Regexp
	source string
}{
	{regexp.MustCompile(`^aks-(.+)-\d+-vmss$`), "AKS: scale set aks-<pool>-<number>-vmss"},
	{regexp.MustCompile(`^eks-(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`),
		"EKS: Auto Scaling group eks-<node group>-<UUID>"},
	{regexp.MustCompile(`^eksctl-.+-nodegroup-(.+)-NodeGroup-\w+$`),
		"eksctl: Auto Scaling group of the CloudFormation stack"},
	{regexp.MustCompile(`^gke-(.+)-[0-9a-f]{8}-grp$`),
		"GKE: instance group gke-<cluster>-<pool>-<hash>-grp, one for each zone"},
}

// poolNames returns the pool names that a node group's name allows: the pool's own name, or a text that ends with a
// hyphen and the pool's name, such as one that begins with the cluster's name.
func poolNames(group string) (exact []string, suffixed string) {
	// GCE uses the URL of an instance group; Cluster API uses the kind, namespace and name of a MachineDeployment.
	base := group[strings.LastIndex(group, "/")+1:]
	exact = []string{group, base}
	for _, row := range groupForms {
		match := row.form.FindStringSubmatch(base)
		switch {
		case match == nil:
		case strings.HasPrefix(base, "gke-"):
			suffixed = match[1]
		default:
			exact = append(exact, match[1])
		}
	}
	return exact, suffixed
}

// ceilingsOf assigns ceilings to pools by the names of their node groups. It adds up the groups of one pool, which has
// one in each zone. A pool without a known group is absent. If several pools match the end of a group's name, the
// longest one counts.
func ceilingsOf(pools []string, ceilings []Ceiling) map[string]Ceiling {
	found := map[string]Ceiling{}
	for _, ceiling := range ceilings {
		pool, known := poolNamed(ceiling.Group, pools)
		if !known {
			continue
		}
		if before, twice := found[pool]; twice {
			ceiling = before.plus(ceiling)
		}
		found[pool] = ceiling
	}
	return found
}

// namesPool reports whether a cloud's form of node group names shows which pool the group belongs to.
func namesPool(group string) bool {
	exact, suffixed := poolNames(group)
	return len(exact) > 2 || suffixed != ""
}

func poolNamed(group string, pools []string) (longest string, known bool) {
	exact, suffixed := poolNames(group)
	for _, pool := range pools {
		if slices.Contains(exact, pool) {
			return pool, true
		}
		if strings.HasSuffix(suffixed, "-"+pool) && len(pool) > len(longest) {
			longest, known = pool, true
		}
	}
	return longest, known
}

// plus joins two groups of one pool. If one of them has no bound, the pool has none.
func (c Ceiling) plus(other Ceiling) Ceiling {
	joined := Ceiling{Group: c.Group + "," + other.Group, MinNodes: sumOfBoth(c.MinNodes, other.MinNodes),
		MaxNodes: sumOfBoth(c.MaxNodes, other.MaxNodes), Source: c.Source}
	for name, limit := range c.Limits {
		if more, both := other.Limits[name]; both {
			if joined.Limits == nil {
				joined.Limits = Quantities{}
			}
			joined.Limits[name] = limit.Plus(more)
		}
	}
	return joined
}

// sumOfBoth is unknown if one of the two is.
func sumOfBoth(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// closeDeleted bounds pools whose NodePool is deleted and whose nodes are left: no node is added to them. rooms are the
// rooms of all existing NodePools.
func closeDeleted(rooms []Room) []Room {
	rooms = slices.Clone(rooms)
	for i := range rooms {
		room := &rooms[i]
		if room.Mixed && room.Source == "" {
			room.Source, room.MaxNodes, room.MayAddNodes = FromKarpenter, new(room.Nodes), new(int64)
		}
	}
	return rooms
}

// withDeletedPool adds the NodePool that the pod selects by name if no such NodePool exists: it can have no pods.
func withDeletedPool(p *PodShape, pools []PoolPods, rooms []Room) []PoolPods {
	name, set := p.Selector[karpenterPool]
	if !set || slices.ContainsFunc(rooms, func(r Room) bool { return r.Pool == name }) {
		return pools
	}
	return append(pools, PoolPods{Pool: name, MayAddNodes: new(int64), MayAddPods: new(int64)})
}
