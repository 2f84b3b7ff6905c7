package kueue

import (
	"cmp"
	"fmt"
	"maps"

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
		Cohort         string `json:"cohort"`
		CohortName     string `json:"cohortName"`
		ResourceGroups []struct {
			Flavors []flavorQuotas `json:"flavors"`
		} `json:"resourceGroups"`
	} `json:"spec"`
	Status struct {
		FlavorsReservation []flavorQuotas `json:"flavorsReservation"`
	} `json:"status"`
}

// flavorQuotas are the quotas of a flavor, or what is reserved of them.
type flavorQuotas struct {
	Name      string `json:"name"`
	Resources []struct {
		Name         string            `json:"name"`
		NominalQuota resource.Quantity `json:"nominalQuota"`
		Total        resource.Quantity `json:"total"`
	} `json:"resources"`
}

// flavored is a resource of a flavor.
type flavored struct{ flavor, resource string }

// clusterQueue is a ClusterQueue.
type clusterQueue struct {
	name, cohort      string
	nominal, reserved map[flavored]raydemand.Amount
}

func readClusterQueue(object *unstructured.Unstructured) (*clusterQueue, error) {
	var read clusterQueueObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return nil, fmt.Errorf("reading ClusterQueue %s: %w", object.GetName(), err)
	}
	q := &clusterQueue{
		name:     read.Metadata.Name,
		cohort:   cmp.Or(read.Spec.CohortName, read.Spec.Cohort),
		nominal:  map[flavored]raydemand.Amount{},
		reserved: map[flavored]raydemand.Amount{},
	}
	for _, group := range read.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				q.nominal[flavored{flavor.Name, r.Name}] = decode.Amount(r.NominalQuota)
			}
		}
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
	return q.cohort == other.cohort && maps.Equal(q.nominal, other.nominal) && maps.Equal(q.reserved, other.reserved)
}
