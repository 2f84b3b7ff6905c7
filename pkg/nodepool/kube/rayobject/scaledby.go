package rayobject

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool/kube/finding"
)

// scaledBy is the field manager that last wrote the worker groups of a RayCluster, or "". To the API server the list of
// groups is one value, so who wrote any replicas last owns all of it (docs/reference/facts.md#owner-of-the-worker-groups). An
// entry without fields is what keepScaler has left of the right one.
func scaledBy(metadata Fields) string {
	manager, latest := "", time.Time{}
	for _, entry := range metadata.Objects("managedFields") {
		if entry.Has("fieldsV1") && !entry.Object("fieldsV1").Object("f:spec").Has("f:workerGroupSpecs") {
			continue
		}
		if at, err := time.Parse(time.RFC3339, entry.Text("time")); err == nil && !at.Before(latest) {
			manager, latest = entry.Text("manager"), at
		}
	}
	return manager
}

// keepScaler drops all of managedFields, which may be larger than all else, but the name that scaledBy reads.
func keepScaler(rayCluster *unstructured.Unstructured) {
	entries := rayCluster.GetManagedFields()
	report := &finding.List{} // what cannot be read is told of when the object is decoded
	metadata := FieldsOf(rayCluster.Object, report).Object("metadata")
	manager := scaledBy(metadata)
	rayCluster.SetManagedFields(nil)
	for _, entry := range slices.Backward(entries) {
		if manager != "" && entry.Manager == manager {
			entry.FieldsV1 = nil
			rayCluster.SetManagedFields(append(entries[:0:0], entry))
			return
		}
	}
}
