package decode

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scaledBy returns the field manager that last wrote the worker groups of a RayCluster, or "". To the API server the
// list of groups is one value, so the last writer of any replicas owns all of it
// (docs/reference/facts.md#owner-of-the-worker-groups). An entry without fields is what keepScaler leaves of the right
// one.
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

// keepScaler drops managedFields, which may be larger than everything else, except for the name that scaledBy reads.
func keepScaler(rayCluster *unstructured.Unstructured) {
	entries := rayCluster.GetManagedFields()
	report := &Report{} // Decode reports what cannot be read
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
