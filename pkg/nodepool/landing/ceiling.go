package landing

import (
	"regexp"
	"slices"
	"strings"
)

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

// The Source of a Ceiling. FromKarpenter is a NodePool, whose nodes may be of any size.
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
	sum := func(a, b *int64) *int64 {
		if a == nil || b == nil {
			return nil
		}
		n := *a + *b
		return &n
	}
	joined := Ceiling{Group: c.Group + "," + other.Group, MinNodes: sum(c.MinNodes, other.MinNodes),
		MaxNodes: sum(c.MaxNodes, other.MaxNodes), Source: c.Source}
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
