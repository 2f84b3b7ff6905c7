package kueue

import (
	"cmp"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// clusterQueueObject is the part of a ClusterQueue that Heliostat reads. The cohort is cohort in v1beta1 and cohortName
// in v1beta2.
type clusterQueueObject struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Cohort         string          `json:"cohort"`
		CohortName     string          `json:"cohortName"`
		ResourceGroups []resourceGroup `json:"resourceGroups"`
		Preemption     struct {
			ReclaimWithinCohort string `json:"reclaimWithinCohort"`
		} `json:"preemption"`
	} `json:"spec"`
	Status struct {
		FlavorsReservation []flavorQuotas `json:"flavorsReservation"`
	} `json:"status"`
}

type resourceGroup struct {
	Flavors []flavorQuotas `json:"flavors"`
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

// flavored is a resource of a flavor.
type flavored struct{ flavor, resource string }

// quota is the quota of a resource. Without a limit, all of it may be lent, and any amount borrowed.
type quota struct {
	nominal            raydemand.Amount
	borrowing, lending *raydemand.Amount
}

func quotasOf(groups []resourceGroup) map[flavored]quota {
	quotas := map[flavored]quota{}
	limit := func(q *resource.Quantity) *raydemand.Amount {
		if q == nil {
			return nil
		}
		return new(decode.Amount(*q))
	}
	for _, group := range groups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				quotas[flavored{flavor.Name, r.Name}] = quota{decode.Amount(r.NominalQuota), limit(r.BorrowingLimit),
					limit(r.LendingLimit)}
			}
		}
	}
	return quotas
}

// clusterQueue is a ClusterQueue.
type clusterQueue struct {
	name, cohort string
	// reclaims says that Kueue may evict work of others in the cohort that has borrowed from its quota.
	reclaims bool
	quotas   map[flavored]quota
	reserved map[flavored]raydemand.Amount
}

func readClusterQueue(object *unstructured.Unstructured) (*clusterQueue, error) {
	var read clusterQueueObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return nil, fmt.Errorf("reading ClusterQueue %s: %w", object.GetName(), err)
	}
	q := &clusterQueue{
		name:     read.Metadata.Name,
		cohort:   cmp.Or(read.Spec.CohortName, read.Spec.Cohort),
		quotas:   quotasOf(read.Spec.ResourceGroups),
		reserved: map[flavored]raydemand.Amount{},
	}
	if policy := read.Spec.Preemption.ReclaimWithinCohort; policy != "" && policy != "Never" {
		q.reclaims = true
	}
	for _, flavor := range read.Status.FlavorsReservation {
		for _, r := range flavor.Resources {
			q.reserved[flavored{flavor.Name, r.Name}] = decode.Amount(r.Total)
		}
	}
	return q, nil
}

// equal reports whether two states of a ClusterQueue leave the same headroom.
func (q *clusterQueue) equal(other *clusterQueue) bool {
	return reflect.DeepEqual(q, other)
}
