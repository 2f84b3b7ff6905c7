package kueue

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// cohort is a Cohort object: a node above ClusterQueues, with quotas of its own and perhaps a parent. A cohort that
// only ClusterQueues name has no object.
type cohort struct {
	parent string
	quotas map[flavored]quota
}

// cohortObject is the part of a Cohort that Heliostat reads (v1beta1 and v1beta2).
type cohortObject struct {
	Spec struct {
		Parent         string          `json:"parent"`
		ParentName     string          `json:"parentName"`
		ResourceGroups []resourceGroup `json:"resourceGroups"`
	} `json:"spec"`
}

func readCohort(object *unstructured.Unstructured) (*cohort, error) {
	var read cohortObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return nil, fmt.Errorf("reading Cohort %s: %w", object.GetName(), err)
	}
	parent := cmp.Or(read.Spec.ParentName, read.Spec.Parent)
	return &cohort{parent: parent, quotas: quotasOf(read.Spec.ResourceGroups)}, nil
}

// maxCohorts bounds how many cohorts are above each other. Kueue refuses a cycle.
const maxCohorts = 16

// quotaTree computes how much of a resource a ClusterQueue may use in all, as Kueue's scheduler does (v0.19.0,
// pkg/cache/scheduler/resource_node.go: available, with what the ClusterQueue uses itself added).
type quotaTree struct {
	of      flavored
	queues  map[string]*clusterQueue
	cohorts map[string]*cohort
	sums    map[string]cohortSums
}

// cohortSums are the quota below and of a cohort, and what is used of it. Only what a child does not keep for itself
// counts.
type cohortSums struct{ quota, used raydemand.Amount }

// kept is the part of a quota that a node does not lend.
func (q quota) kept(total raydemand.Amount) raydemand.Amount {
	if q.lending == nil {
		return 0
	}
	return max(0, total-*q.lending)
}

// most returns how much the ClusterQueue may use in all, its own use included.
func (t *quotaTree) most(queue *clusterQueue) raydemand.Amount {
	q := queue.quotas[t.of]
	if queue.cohort == "" {
		return q.nominal
	}
	t.sums = map[string]cohortSums{}
	return queue.reserved[t.of] + t.available(queue.cohort, q, q.nominal, queue.reserved[t.of], 0)
}

// noCohort is a cohort without an object.
var noCohort cohort

// sumsOf adds up the children of a cohort.
func (t *quotaTree) sumsOf(name string, depth int) cohortSums {
	if sums, known := t.sums[name]; known || depth > maxCohorts {
		return sums
	}
	var sums cohortSums
	if own := t.cohorts[name]; own != nil {
		sums.quota = own.quotas[t.of].nominal
	}
	add := func(q quota, total, used raydemand.Amount) {
		kept := q.kept(total)
		sums.quota += total - kept
		sums.used += max(0, used-kept)
	}
	for _, queue := range t.queues {
		if queue.cohort == name {
			add(queue.quotas[t.of], queue.quotas[t.of].nominal, queue.reserved[t.of])
		}
	}
	for child, c := range t.cohorts {
		if c.parent == name {
			below := t.sumsOf(child, depth+1)
			add(c.quotas[t.of], below.quota, below.used)
		}
	}
	t.sums[name] = sums
	return sums
}

// available returns what a node with so much quota and use may still take: of what it keeps, and of its cohort.
func (t *quotaTree) available(cohort string, q quota, total, used raydemand.Amount, depth int) raydemand.Amount {
	if cohort == "" || depth > maxCohorts {
		return total - used
	}
	above := t.sumsOf(cohort, depth)
	own := t.cohorts[cohort]
	if own == nil {
		own = &noCohort
	}
	free := t.available(own.parent, own.quotas[t.of], above.quota, above.used, depth+1)
	kept := q.kept(total)
	if q.borrowing != nil {
		free = min(free, total-kept-max(0, used-kept)+*q.borrowing)
	}
	return max(0, kept-used) + free
}
