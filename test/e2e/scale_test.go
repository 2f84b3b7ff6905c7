package e2e

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/test/rig"
)

// TestAClusterThatARayJobOrRayServiceOwnsIsScaled scales a RayCluster whose spec belongs to a RayJob or a RayService.
func TestAClusterThatARayJobOrRayServiceOwnsIsScaled(t *testing.T) {
	for _, test := range []struct {
		kind     string
		resource schema.GroupVersionResource
		spec     map[string]any
	}{
		// In this mode, users submit the job. The operator creates the cluster and waits.
		{"RayJob", rig.RayJobs, map[string]any{"submissionMode": "InteractiveMode", "rayClusterSpec": nil}},
		{"RayService", rig.RayServices, map[string]any{"serveConfigV2": "applications: []", "rayClusterConfig": nil}},
	} {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, "")
			for field, value := range test.spec {
				if value == nil {
					test.spec[field] = rig.Cluster{IdleSeconds: 5, Groups: []rig.Group{gpu}}.Spec()
				}
			}
			s.must(lab.CreateAny(s.ctx, test.resource, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "ray.io/v1", "kind": test.kind,
				"metadata": map[string]any{"namespace": s.namespace, "name": "owner"},
				"spec":     test.spec,
			}}))
			s.name = s.ownedCluster()
			lab.Observe(s.ctx, s.namespace, s.name, s.journal)
			s.headAlive()
			s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
			s.workers("gpu", 1)
			s.rest(http.MethodDelete, "/request_resources", "")
			s.workers("gpu", 0)
		})
	}
}
