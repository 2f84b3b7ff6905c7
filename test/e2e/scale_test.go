package e2e

import (
	"net/http"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/test/rig"
)

// TestLimitsAreKept changes the minimum and maximum of groups with idle and busy workers. The fleet instance manages
// the cluster, and our sidecar in its head pod is idle. Without the sidecar, enableInTreeAutoscaling is false, and the
// operator itself reacts to a lower limit: it deletes a pod of its choice.
func TestLimitsAreKept(t *testing.T) {
	t.Parallel()
	s := stage(t, rig.Cluster{
		Name: "limits", IdleSeconds: 5, Groups: []rig.Group{cpu, gpu},
		InTree: true, SidecarImage: rig.SidecarImage, Annotations: map[string]string{"heliostat.dev/mode": "managed"},
	})

	// Heliostat keeps the minimum without demand, also after it is raised.
	s.setGroup(0, map[string]any{"minReplicas": 1})
	s.workers("cpu", 1)

	// Demand exceeds the maximum. After the maximum is raised, Heliostat launches the rest.
	s.setGroup(1, map[string]any{"maxReplicas": 1})
	driver := s.drive()
	s.do(driver, actor("first", 1), actor("second", 1))
	s.workers("gpu", 1)
	s.quiet("the maximum is 1")
	s.setGroup(1, map[string]any{"maxReplicas": 2})
	s.see(driver, "first", "running")
	s.see(driver, "second", "running")
	busy := s.workers("gpu", 2)

	// The maximum falls below the number of busy workers. Work has ten minutes to end, so Heliostat stops nothing now,
	// and the actors stay alive.
	s.setGroup(1, map[string]any{"maxReplicas": 1})
	s.quiet("both workers are busy")
	s.do(driver, rig.Command{Do: "ask", ID: "first"}, rig.Command{Do: "ask", ID: "second"})
	s.see(driver, "first", "answered")
	s.see(driver, "second", "answered")
	if living := rig.Living(s.journal.Facts(), "gpu"); !slices.Equal(living, busy) {
		s.Errorf("workers %v became %v", busy, living)
	}

	// The minimum retains an idle worker. Without the minimum, Heliostat stops it.
	s.workers("cpu", 1)
	s.setGroup(0, map[string]any{"minReplicas": 0})
	s.workers("cpu", 0)
	s.drainedBeforeStopped()
}

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
