package kueue

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// flavored is a resource of a flavor.
type flavored struct{ flavor, resource string }

// quota is the quota of a resource. Without a limit, all of it may be lent, and any amount borrowed.
type quota struct {
	nominal            raydemand.Amount
	borrowing, lending *raydemand.Amount
}

// kept is the part of a quota that is not lent.
func (q quota) kept(total raydemand.Amount) raydemand.Amount {
	if q.lending == nil {
		return 0
	}
	return max(0, total-*q.lending)
}

// quotaHolder is a ClusterQueue, or a Cohort: a node above ClusterQueues, with quotas of its own.
type quotaHolder struct {
	// name is its name, and cohort that of the Cohort above it, or empty. A Cohort needs no object.
	name, cohort string
	// reclaims says that Kueue may evict work of others in the cohort that has borrowed from the quota.
	reclaims bool
	quotas   map[flavored]quota
	// reserved is what Workloads have of a ClusterQueue.
	reserved map[flavored]raydemand.Amount
}

// flavorQuotas are the quotas of a flavor, or what is reserved of them.
type flavorQuotas struct {
	Name      string `json:"name"`
	Resources []struct {
		Name           string             `json:"name"`
		NominalQuota   resource.Quantity  `json:"nominalQuota"`
		BorrowingLimit *resource.Quantity `json:"borrowingLimit"`
		LendingLimit   *resource.Quantity `json:"lendingLimit"`
		Total          resource.Quantity  `json:"total"`
	} `json:"resources"`
}

// readHolder reads a ClusterQueue or a Cohort (v1beta2).
func readHolder(object *unstructured.Unstructured) (*quotaHolder, error) {
	var read struct {
		Spec struct {
			CohortName     string `json:"cohortName"` // of a ClusterQueue
			ParentName     string `json:"parentName"` // of a Cohort
			ResourceGroups []struct {
				Flavors []flavorQuotas `json:"flavors"`
			} `json:"resourceGroups"`
			Preemption struct {
				ReclaimWithinCohort string `json:"reclaimWithinCohort"`
			} `json:"preemption"`
		} `json:"spec"`
		Status struct {
			FlavorsReservation []flavorQuotas `json:"flavorsReservation"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	reclaim := cmp.Or(read.Spec.Preemption.ReclaimWithinCohort, "Never")
	h := &quotaHolder{name: object.GetName(), cohort: cmp.Or(read.Spec.CohortName, read.Spec.ParentName),
		reclaims: reclaim != "Never", quotas: map[flavored]quota{}, reserved: map[flavored]raydemand.Amount{}}
	limit := func(q *resource.Quantity) *raydemand.Amount {
		if q == nil {
			return nil
		}
		return new(decode.Amount(*q))
	}
	for _, group := range read.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				h.quotas[flavored{flavor.Name, r.Name}] = quota{decode.Amount(r.NominalQuota), limit(r.BorrowingLimit),
					limit(r.LendingLimit)}
			}
		}
	}
	for _, flavor := range read.Status.FlavorsReservation {
		for _, r := range flavor.Resources {
			h.reserved[flavored{flavor.Name, r.Name}] = decode.Amount(r.Total)
		}
	}
	return h, nil
}

// maxCohorts bounds how many cohorts are above each other. Kueue refuses a cycle.
const maxCohorts = 16

// quotaTree computes how much of a resource a ClusterQueue may use in all, as Kueue's scheduler does (v0.19.0,
// pkg/cache/scheduler/resource_node.go: available, with what the ClusterQueue uses itself added).
type quotaTree struct {
	of              flavored
	queues, cohorts map[string]*quotaHolder
}

// most returns how much the ClusterQueue may use in all, its own use included.
func (t *quotaTree) most(queue *quotaHolder) raydemand.Amount {
	q, used := queue.quotas[t.of], queue.reserved[t.of]
	return used.Plus(t.available(queue.cohort, q, q.nominal, used, 0))
}

// sumsOf adds up the quota below and of a cohort, and what is used of it. Only what a child does not keep for itself
// counts.
func (t *quotaTree) sumsOf(name string, depth int) (total, used raydemand.Amount) {
	if depth > maxCohorts {
		return 0, 0
	}
	if own := t.cohorts[name]; own != nil {
		total = own.quotas[t.of].nominal
	}
	add := func(q quota, below, usedBelow raydemand.Amount) {
		kept := q.kept(below)
		total = total.Plus(below - kept)
		used = used.Plus(max(0, usedBelow-kept))
	}
	for _, queue := range t.queues {
		if queue.cohort == name {
			add(queue.quotas[t.of], queue.quotas[t.of].nominal, queue.reserved[t.of])
		}
	}
	for child, c := range t.cohorts {
		if c.cohort == name {
			below, usedBelow := t.sumsOf(child, depth+1)
			add(c.quotas[t.of], below, usedBelow)
		}
	}
	return total, used
}

// available returns what a node with so much quota and use may still take: of what it keeps, and of its cohort. Quota
// that adds up to MaxAmount, as bytes of a large fleet do, is more than can be counted, and bounds nothing.
func (t *quotaTree) available(cohort string, q quota, total, used raydemand.Amount, depth int) raydemand.Amount {
	switch top := cohort == "" || depth > maxCohorts; {
	case top && total == raydemand.MaxAmount:
		return total
	case top:
		return total - used
	}
	above, usedAbove := t.sumsOf(cohort, depth)
	own := cmp.Or(t.cohorts[cohort], &quotaHolder{})
	free := t.available(own.cohort, own.quotas[t.of], above, usedAbove, depth+1)
	kept := q.kept(total)
	if q.borrowing != nil {
		free = min(free, (total - kept - max(0, used-kept)).Plus(*q.borrowing))
	}
	return free.Plus(max(0, kept-used))
}
