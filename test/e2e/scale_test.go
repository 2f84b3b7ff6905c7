package e2e

import (
	"net/http"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/test/rig"
)

// mig is a group whose pods have one MIG slice. Its label lets work request a slice instead of a whole GPU.
var mig = rig.Group{Name: "mig", Max: 7, Devices: map[string]int64{"nvidia.com/mig-1g.10gb": 1}, Labels: map[string]string{"gpu-slice": "mig-1g.10gb"}}

// TestWorkGetsExactlyTheWorkersItNeeds creates demand in every way that Ray has, one after the other, on one
// RayCluster. The demand stays, so each step needs new workers. Any additional worker means that demand was counted
// twice.
func TestWorkGetsExactlyTheWorkersItNeeds(t *testing.T) {
	t.Parallel()
	s := stage(t, rig.Cluster{Name: "asks", IdleSeconds: 5, Groups: []rig.Group{cpu, gpu, mig}})
	driver := s.drive()

	// A task that needs one GPU.
	s.do(driver, task("whole", 1))
	s.see(driver, "whole", "running")
	s.workers("gpu", 1)

	// Four half GPUs need two workers, because the first worker is full.
	s.do(driver, task("half-1", 0.5), task("half-2", 0.5), task("half-3", 0.5), task("half-4", 0.5))
	for _, id := range []string{"half-1", "half-2", "half-3", "half-4"} {
		s.see(driver, id, "running")
	}
	s.workers("gpu", 3)

	// An actor on a MIG slice.
	slice := actor("slice", 1)
	slice.Labels = mig.Labels
	s.do(driver, slice)
	s.see(driver, "slice", "running")
	s.workers("mig", 1)

	// A placement group that needs one worker of each GPU group and one with two CPUs.
	s.do(driver, rig.Command{Do: "group", ID: "gang", Bundles: []map[string]float64{{"GPU": 1}, {"CPU": 2}}})
	s.see(driver, "gang", "placed")
	s.workers("cpu", 1)

	// Heliostat launched no unneeded worker. It stops no busy worker, although all others would be idle by now.
	s.quiet("all demand is served and all workers are busy")
	s.created("cpu", 1)
	if gpus := len(rig.Pods(s.journal.Facts(), "gpu")) + len(rig.Pods(s.journal.Facts(), "mig")); gpus != 5 {
		s.Errorf("%d workers with GPUs were created, 5 are needed", gpus)
	}

	// A shape that no group can serve is impossible. A shape that exceeds the maximum is capped. Neither scales a
	// group.
	tooMany := rig.Command{Do: "group", ID: "too-many"}
	for range cpu.Max + 1 {
		tooMany.Bundles = append(tooMany.Bundles, map[string]float64{"CPU": 2})
	}
	s.do(driver, task("too-big", 2), tooMany)
	s.told("both reasons", func(st status) bool { return st.unmet("impossible") && st.unmet("capped") })
	s.created("cpu", 1)

	ids := []string{"whole", "half-1", "half-2", "half-3", "half-4", "slice", "gang", "too-big", "too-many"}
	for _, id := range ids {
		s.do(driver, release(id))
	}
	for _, id := range ids {
		s.see(driver, id, "released")
	}
	for _, group := range []string{"cpu", "gpu", "mig"} {
		s.workers(group, 0)
	}
	s.drainedBeforeStopped()
	for group, n := range rig.Replicas(s.object()) {
		if n != 0 {
			s.Errorf("group %s keeps %d replicas with nothing to do", group, n)
		}
	}
}

// TestRequestsOverRESTAndThroughTheSDKStandBesideEachOther checks the semantics of Ray's request_resources through REST
// and through the SDK. The cluster retains at least the requested resources of each way, and each call replaces the
// previous one of the same way.
func TestRequestsOverRESTAndThroughTheSDKStandBesideEachOther(t *testing.T) {
	t.Parallel()
	s := stage(t, rig.Cluster{Name: "requests", IdleSeconds: 5, Groups: []rig.Group{cpu, gpu}})

	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.workers("gpu", 1)

	// The driver requests the same and a CPU bundle. The existing GPU serves both requests.
	driver := s.drive()
	s.do(driver, rig.Command{Do: "request_resources", ID: "sdk", Bundles: []map[string]float64{{"GPU": 1}, {"CPU": 2}}})
	s.see(driver, "sdk", "requested")
	s.workers("cpu", 1)
	s.quiet("both requests are served")
	s.created("gpu", 1)

	// Without the driver's request, the REST request still retains its worker after the idle timeout.
	s.do(driver, rig.Command{Do: "request_resources", ID: "sdk-none", Bundles: []map[string]float64{}})
	s.workers("cpu", 0)
	s.workers("gpu", 1)

	s.rest(http.MethodPost, "/request_resources", `{"num_cpus": 1}`)
	s.rest(http.MethodDelete, "/request_resources", "")
	s.workers("gpu", 0)
	s.drainedBeforeStopped()
}

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

// TestAMultiHostGroupScalesByWholeReplicas requests one GPU of a group whose replicas have two pods.
func TestAMultiHostGroupScalesByWholeReplicas(t *testing.T) {
	t.Parallel()
	pair := rig.Group{Name: "pair", Max: 2, Hosts: 2, Devices: map[string]int64{"nvidia.com/gpu": 1}}
	s := stage(t, rig.Cluster{Name: "hosts", IdleSeconds: 5, Groups: []rig.Group{pair}})
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.workers("pair", 2)
	s.quiet("one replica has two hosts")
	if got := rig.Replicas(s.object())["pair"]; got != 1 {
		s.Errorf("replicas are %d, want 1", got)
	}
	s.rest(http.MethodDelete, "/request_resources", "")
	s.workers("pair", 0)
	s.created("pair", 2)
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
