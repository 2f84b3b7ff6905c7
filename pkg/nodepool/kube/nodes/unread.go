package nodes

import (
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about what this process may not read.
const (
	// NodesForbidden: nodes are unknown, so workers on lost nodes and groups without a node are not detected.
	NodesForbidden = "nodes-forbidden"
	// PodsUnknown: the pods of all namespaces are unknown, so nodes count as empty.
	PodsUnknown = "pods-unknown"
	// ClaimsUnknown: ResourceSlices or ResourceClaims are unknown, so devices that claims have count as free.
	ClaimsUnknown = "claims-unknown"
	// CeilingsUnknown: the ceilings of pools cannot be read, or are out of date; all of these pools can then grow.
	CeilingsUnknown = "ceilings-unknown"
	// NodeClaimsForbidden: Karpenter runs and its NodeClaims are unknown, so future nodes are not seen.
	NodeClaimsForbidden = "nodeclaims-forbidden"
	// EventsForbidden: the Events of node autoscalers about pods are not seen.
	EventsForbidden = "events-forbidden"
)

// meanings say what each code means for the RayCluster, and what to grant.
var meanings = map[string]struct{ why, fix string }{
	NodesForbidden: {"this process may not list and watch nodes, so it cannot detect where the groups could run or " +
		"that a worker's node is lost", "grant it list and watch on nodes by a ClusterRole"},
	PodsUnknown: {"this process may not list and watch the pods of all namespaces, so it counts nodes as empty; it " +
		"may launch pods for which the nodes have no room", "grant it list and watch on pods by a ClusterRole"},
	ClaimsUnknown: {"this process may not list and watch ResourceSlices and ResourceClaims, so devices that claims " +
		"have count as free; it may launch pods on GPUs that are in use",
		"grant it list and watch on resourceslices and resourceclaims of resource.k8s.io by a ClusterRole"},
	CeilingsUnknown: {"how far pools of nodes may grow is unknown, so groups are scaled as if the pools had no " +
		"limit, and pods may stay pending", "grant get on the ConfigMap " + decode.StatusConfigMap + " and list on " +
		"nodepools.karpenter.sh as deploy/rbac.yaml does, or set the sizes with --pools"},
	NodeClaimsForbidden: {"this process may not list and watch Karpenter's NodeClaims, so it does not see future " +
		"nodes and takes longer to detect that a group is out of stock",
		"grant it list and watch on nodeclaims.karpenter.sh as deploy/rbac.yaml does"},
	EventsForbidden: {"this process may not list and watch Events, so it detects that a group's nodes are out of " +
		"stock only by the allocation timeout", "grant it list and watch on events"},
}

// unread returns the finding with a code; seen is what is unknown, if the code does not say it.
func unread(key nodepool.ClusterKey, code, seen string) raydemand.Finding {
	return raydemand.Finding{Code: code, Severity: raydemand.Info, Object: "RayCluster " + key.String(), Seen: seen,
		Why: meanings[code].why, Fix: meanings[code].fix}
}
