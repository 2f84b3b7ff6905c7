// Package costs adds up what workers cost (costs.go, with package ledger). spending.go says for what the pods of one
// decision are spent, with causes, owners and prices. It must not influence decisions.
package costs

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/price"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes that say more about a cause, besides those of unused GPUs (planner.WhyUnused).
const (
	// WaitsForNode: the pod has no node yet, so it costs nothing. Of Starting.
	WaitsForNode = "no_node"
	// NeverJoined: the pod did not join Ray in time. Failed: Kubernetes reports that the pod has failed. MachineGone:
	// its machine is gone. All of Lost.
	NeverJoined = "never_joined"
	Failed      = "failed"
	MachineGone = "machine_gone"
	// RaySilent: Ray does not answer. Off: the mode is off, so Ray is not asked. FormerGroup: the pod's group is not in
	// the RayCluster. All of Unknown.
	RaySilent   = "ray_silent"
	Off         = "off"
	FormerGroup = "former_group"
	// Request: a request of an owner, or the plain request over REST, keeps it. Driver: request_resources of Ray's SDK
	// keeps it. PlacementGroup: a placement group reserves it, and nothing runs. All of Reserved.
	Request        = "request"
	Driver         = "request_resources"
	PlacementGroup = "placement_group"
)

// Of appends the parts of all worker pods of a decision, and its head.
func Of(pods []ledger.Pod, d *addon.Decision, book *price.Book) []ledger.Pod {
	s := spender{decision: d, book: book, owner: ownerOf(&d.Kube)}
	s.why = planner.WhyUnused(&d.Snapshot, &d.Plan)
	s.silent = d.RayErr != "" || d.Mode == nodepool.Off
	workers := d.Pods.List()
	for i := range workers {
		pods = s.add(pods, &workers[i])
	}
	return s.addHead(pods)
}

// addHead appends the head pod. It costs its share of its node, whatever runs there.
func (s *spender) addHead(pods []ledger.Pod) []ledger.Pod {
	head := &s.decision.Kube.Head
	if head.Pod == "" {
		return pods
	}
	pod := ledger.Pod{Part: 1, Account: ledger.Account{Group: ledger.HeadGroup, Owner: s.owner, Cause: ledger.Head}}
	if head.Node == "" {
		pod.Why = WaitsForNode
		return append(pods, pod)
	}
	hourly, known := addon.HourlyShare(&s.decision.Kube, head.Node, head.Shape, s.book)
	pod.Hourly, pod.Unpriced = hourly, !known
	if seen := s.decision.Snapshot.Head; seen != nil {
		pod.GPUs = seen.Total[raydemand.GPU].Float()
	}
	return append(pods, pod)
}

// ownerOf returns whom a RayCluster belongs to: the RayJob or RayService that made it, otherwise the RayCluster.
func ownerOf(cluster *nodepool.Cluster) string {
	if cluster.Owner.Name != "" {
		return cluster.Owner.Kind + "/" + cluster.Owner.Name
	}
	return "RayCluster/" + cluster.Key.Name
}

type spender struct {
	decision *addon.Decision
	book     *price.Book
	owner    string
	why      func(*planner.Node) string
	silent   bool
	// keepers are the owners of requests by the pods that they keep, once they are needed.
	keepers map[string][]string
}

// add appends the parts of one pod. They add up to 1.
func (s *spender) add(pods []ledger.Pod, w *nodepool.Worker) []ledger.Pod {
	whole := ledger.Pod{Account: ledger.Account{Group: w.Group, Owner: s.owner}, Part: 1}
	node := s.node(w.Pod)
	bound := w.Node != "" || !w.ScheduledAt.IsZero()
	if bound {
		hourly, known := addon.Hourly(&s.decision.Kube, w, s.book)
		whole.Hourly, whole.Unpriced = hourly, !known
		if node != nil {
			whole.GPUs = node.Total[raydemand.GPU].Float()
		} else if group, known := s.decision.Kube.Group(w.Group); known {
			whole.GPUs = group.Resources[raydemand.GPU].Float()
		}
	}
	only := func(cause ledger.Cause, why string) []ledger.Pod {
		whole.Cause, whole.Why = cause, why
		return append(pods, whole)
	}
	switch {
	case w.Failed && !w.Terminating:
		return only(ledger.Lost, Failed)
	case node == nil && w.Terminating:
		return only(ledger.Leaving, "")
	case node == nil:
		return only(ledger.Unknown, FormerGroup)
	case w.NodeGone:
		return only(ledger.Lost, MachineGone)
	case node.State == planner.AllocationTimeout:
		return only(ledger.Lost, NeverJoined)
	case node.State == planner.Pending && !bound:
		return only(ledger.Starting, WaitsForNode)
	case node.State == planner.Pending:
		return only(ledger.Starting, "")
	case node.State == planner.Leaving && !node.Since.IsZero(): // it has not joined
		return only(ledger.Leaving, "")
	case s.decision.Mode == nodepool.Off:
		return only(ledger.Unknown, Off)
	case s.silent:
		return only(ledger.Unknown, RaySilent)
	}
	return s.divide(pods, whole, node)
}

// node returns the pod's node in the snapshot, whose nodes are sorted; nil if it has none.
func (s *spender) node(pod string) *planner.Node {
	nodes := s.decision.Snapshot.Nodes
	at, found := slices.BinarySearchFunc(nodes, pod,
		func(n planner.Node, pod string) int { return strings.Compare(n.Pod, pod) })
	if !found {
		return nil
	}
	return &nodes[at]
}

// divide appends the parts of a worker that has joined Ray: what is in use, and why the rest is not.
func (s *spender) divide(pods []ledger.Pod, whole ledger.Pod, node *planner.Node) []ledger.Pod {
	used := 1.0
	resource := node.Main()
	switch total, free := node.Total[resource], node.Available[resource]; {
	case total > 0:
		used = min(max(1-free.Float()/total.Float(), 0), 1)
	case node.State == planner.Idle:
		used = 0
	}
	if used > 0 {
		part := partOf(whole, used)
		part.Cause = ledger.Used
		if node.OnlyReserves() {
			part.Cause, part.Why = ledger.Reserved, PlacementGroup
		}
		pods = append(pods, part)
	}
	if used == 1 {
		return pods
	}
	return s.unused(pods, partOf(whole, 1-used), node)
}

// partOf returns a part of a pod.
func partOf(whole ledger.Pod, part float64) ledger.Pod {
	whole.Part, whole.GPUs, whole.Hourly = whole.Part*part, whole.GPUs*part, whole.Hourly*part
	return whole
}

// unused appends the part of a worker that nothing uses. What requests keep is divided evenly among them.
func (s *spender) unused(pods []ledger.Pod, rest ledger.Pod, node *planner.Node) []ledger.Pod {
	why := s.why(node)
	if why == planner.UnusedLeaving {
		rest.Cause = ledger.Leaving
		return append(pods, rest)
	}
	keepers := s.keepersOf(node.Pod)
	for _, owner := range keepers {
		part := partOf(rest, 1/float64(len(keepers)))
		part.Owner, part.Cause, part.Why = owner, ledger.Reserved, Request
		pods = append(pods, part)
	}
	if len(keepers) > 0 {
		return pods
	}
	switch why {
	case planner.UnusedWarm:
		rest.Cause = ledger.Warm
	case planner.UnusedStarting:
		rest.Cause = ledger.Starting
	case planner.UnusedReserved:
		rest.Cause, rest.Why = ledger.Reserved, PlacementGroup
	case planner.UnusedKept:
		rest.Cause, rest.Why = ledger.Idle, why
		switch {
		case len(s.decision.Plan.Requests) > 0: // a plan names only some of the pods of a large request
			rest.Cause, rest.Why = ledger.Reserved, Request
		case len(s.decision.Snapshot.Constraint) > 0:
			rest.Cause, rest.Why = ledger.Reserved, Driver
		}
	default:
		rest.Cause, rest.Why = ledger.Idle, why
	}
	return append(pods, rest)
}

// keepersOf returns the owners of the requests that keep a pod.
func (s *spender) keepersOf(pod string) []string {
	requests := s.decision.Plan.Requests
	if s.keepers == nil && len(requests) > 0 {
		s.keepers = map[string][]string{}
		for i := range requests {
			owner := s.owner
			if !requests[i].Plain {
				owner = "request/" + requests[i].Owner
			}
			for _, pod := range requests[i].Pods {
				s.keepers[pod] = append(s.keepers[pod], owner)
			}
		}
	}
	return s.keepers[pod]
}
