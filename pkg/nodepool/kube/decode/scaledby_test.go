package decode

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhoScalesIsWhoWroteTheWorkerGroupsLastAndIsKeptInTheCache(t *testing.T) {
	const groups = `fieldsV1: {f:spec: {f:workerGroupSpecs: {}}}`
	for _, test := range []struct{ name, entries, want string }{
		{"nobody", `[]`, ""},
		{"whoever made it", `[{manager: kubectl-create, operation: Update, time: "2026-01-01T00:00:00Z", ` + groups + `}]`, "kubectl-create"},
		{"Ray's own autoscaler after that", `[{manager: python-requests, operation: Update, time: "2026-01-01T00:01:00Z", ` + groups + `},
			{manager: kubectl-create, operation: Update, time: "2026-01-01T00:00:00Z", fieldsV1: {f:spec: {f:rayVersion: {}}}}]`, "python-requests"},
		{"an applier that was later than another", `[{manager: platform, operation: Apply, time: "2026-01-01T00:02:00Z", ` + groups + `},
			{manager: heliostat, operation: Update, time: "2026-01-01T00:01:00Z", ` + groups + `}]`, "platform"},
		{"only the status is written", `[{manager: manager, operation: Update, subresource: status, time: "2026-01-01T00:02:00Z", fieldsV1: {f:status: {}}}]`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: objectOf(t, "{metadata: {name: c, managedFields: "+test.entries+"}}")}
			if got := DecodeObject(object).Cluster.ScaledBy; got != test.want {
				t.Errorf("scaled by %q, want %q", got, test.want)
			}
			if _, err := StripRayCluster(object); err != nil {
				t.Fatal(err)
			}
			for _, entry := range object.GetManagedFields() {
				if entry.FieldsV1 != nil {
					t.Errorf("the cache keeps the fields of %s", entry.Manager)
				}
			}
			if got := DecodeObject(object).Cluster.ScaledBy; got != test.want {
				t.Errorf("in the cache scaled by %q, want %q", got, test.want)
			}
		})
	}
}
