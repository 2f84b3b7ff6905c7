// Package costs adds up what workers cost (costs.go, with package ledger). spending.go says for what the pods of one
// decision are spent, with causes and prices. It must not influence decisions.
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

// Of appends the parts of all worker pods of a decision, and its head.
func Of(pods []ledger.Pod, d *addon.Decision, book *price.Book) []ledger.Pod {
	s := spender{decision: d, book: book, owner: "RayCluster/" + d.Kube.Key.Name,
		why: planner.WhyUnused(&d.Snapshot, &d.Plan), requested: map[string]bool{}}
	if d.Kube.Owner.Name != "" { // the RayJob or RayService that made it
		s.owner = d.Kube.Owner.Kind + "/" + d.Kube.Owner.Name
	}
	for i := range d.Plan.Requests {
		for _, pod := range d.Plan.Requests[i].Pods {
			s.requested[pod] = true
		}
	}
	workers := d.Pods.Get()
	for i := range workers {
		pods = s.add(pods, &workers[i])
	}
	return s.addHead(pods)
}

type spender struct {
	decision *addon.Decision
	book     *price.Book
	// owner is whom the RayCluster belongs to.
	owner string
	why   func(*planner.Node) string
	// requested are pods that requests keep. A plan names only some of the pods of a large request.
	requested map[string]bool
}

// addHead appends the head pod. It costs its share of its node, whatever runs there.
func (s *spender) addHead(pods []ledger.Pod) []ledger.Pod {
	head := &s.decision.Kube.Head
	if head.Pod == "" {
		return pods
	}
	pod := ledger.Pod{Part: 1, Account: ledger.Account{Group: ledger.HeadGroup, Owner: s.owner, Cause: ledger.Head}}
	if head.Node == "" {
		return append(pods, pod)
	}
	hourly, known := addon.HourlyShare(&s.decision.Kube, head.Node, head.Shape, s.book)
	pod.Hourly, pod.Unpriced = hourly, !known
	if seen := s.decision.Snapshot.Head; seen != nil {
		pod.GPUs = seen.Total[raydemand.GPU].Float()
	}
	return append(pods, pod)
}

// add appends the parts of one pod. They add up to 1.
func (s *spender) add(pods []ledger.Pod, w *nodepool.Worker) []ledger.Pod {
	whole := ledger.Pod{Account: ledger.Account{Group: w.Group, Owner: s.owner}, Part: 1}
	node := s.node(w.Pod)
	if w.Node != "" || !w.ScheduledAt.IsZero() {
		hourly, known := addon.Hourly(&s.decision.Kube, w, s.book)
		whole.Hourly, whole.Unpriced = hourly, !known
		if node != nil {
			whole.GPUs = node.Total[raydemand.GPU].Float()
		} else if group, known := s.decision.Kube.Group(w.Group); known {
			whole.GPUs = group.Resources[raydemand.GPU].Float()
		}
	}
	switch {
	case w.Failed && !w.Terminating, node != nil && (w.NodeGone || node.State == planner.AllocationTimeout):
		whole.Cause = ledger.Lost
	case node == nil && w.Terminating, node != nil && node.State == planner.Leaving && !node.Since.IsZero():
		whole.Cause = ledger.Leaving // it has not joined
	case node == nil: // its group is not in the RayCluster any more
		whole.Cause = ledger.Unknown
	case node.State == planner.Pending:
		whole.Cause = ledger.Starting
	case s.decision.RayErr != "", s.decision.Mode == nodepool.Off:
		whole.Cause = ledger.Unknown
	default:
		return s.divide(pods, whole, node)
	}
	return append(pods, whole)
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
	part := func(part float64, cause ledger.Cause, why string) {
		p := whole
		p.Part, p.GPUs, p.Hourly, p.Cause, p.Why = part, whole.GPUs*part, whole.Hourly*part, cause, why
		pods = append(pods, p)
	}
	switch {
	case used > 0 && node.OnlyReserves():
		part(used, ledger.Reserved, "")
	case used > 0:
		part(used, ledger.Used, "")
	}
	if used == 1 {
		return pods
	}
	held := len(s.decision.Plan.Requests)+len(s.decision.Snapshot.Constraint) > 0
	switch why := s.why(node); {
	case why == planner.UnusedLeaving:
		part(1-used, ledger.Leaving, "")
	case why == planner.UnusedReserved, why == planner.UnusedKept && held, s.requested[node.Pod]:
		part(1-used, ledger.Reserved, "")
	case why == planner.UnusedWarm:
		part(1-used, ledger.Warm, "")
	case why == planner.UnusedStarting:
		part(1-used, ledger.Starting, "")
	default:
		part(1-used, ledger.Idle, why)
	}
	return pods
}
