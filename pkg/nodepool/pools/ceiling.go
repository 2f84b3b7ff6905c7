package pools

import (
	"regexp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// Ceiling is how far the autoscaler of a pool of nodes may change it. What is not known is nil, and means that it may:
// a pending pod can still wake the pool.
type Ceiling struct {
	// Group is the pool as its autoscaler calls it: the name of a scale set, an instance group or a NodePool.
	Group string `json:"group"`
	// MinNodes and MaxNodes count nodes.
	MinNodes *int64 `json:"minNodes"`
	MaxNodes *int64 `json:"maxNodes"`
	// Replicas is how many nodes a static NodePool keeps (Karpenter, spec.replicas): they are there whether pods wait
	// or not, and none is added for a pod. nil for all other pools.
	Replicas *int64 `json:"replicas,omitempty"`
	// Limits bound what all nodes of the pool have together, by resource (Karpenter); none where there are none.
	Limits podfit.Quantities `json:"limits,omitempty"`
	// Source is who says so: cluster-autoscaler, karpenter or configuration.
	Source string `json:"source"`
	// Template is what every node that is added will be; nil where its autoscaler does not tell.
	Template *NodeTemplate `json:"-"`
}

// The Source of a Ceiling. FromKarpenter is a NodePool, whose nodes may be of any size.
const (
	FromKarpenter         = "karpenter"
	FromClusterAutoscaler = "cluster-autoscaler"
)

// groupForms are how clouds call the node group of a pool. A pool is named in the first subexpression.
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

// poolNames are what a node group says of its pool's name: the pool's itself, or a text that ends with it behind a
// hyphen, as where the name of the cluster stands before it.
func poolNames(group string) (exact []string, suffixed string) {
	// GCE calls an instance group by its URL, Cluster API a MachineDeployment by kind, namespace and name.
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

// CeilingsOf assigns ceilings to pools by the names of their node groups, and adds up those of one pool, which has a
// group in each zone. A pool of which no group is known is absent. Where the name of a group ends like several pools
// the longest is meant.
func CeilingsOf(pools []string, ceilings []Ceiling) map[string]Ceiling {
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

// namesPool reports whether a cloud's form of naming node groups tells the pool that a group is of.
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

// plus joins two groups of one pool. Where one is not bounded the pool is not.
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
				joined.Limits = podfit.Quantities{}
			}
			joined.Limits[name] = limit.Plus(more)
		}
	}
	return joined
}
