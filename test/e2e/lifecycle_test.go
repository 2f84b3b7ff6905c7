package e2e

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/rig"
)

// sleepers is a group whose pods never join Ray, for tests of what is launched.
var sleepers = rig.Group{Name: "gpu", Max: 4, Image: rig.SleeperImage, Devices: gpu.Devices}

// TestARayClusterOfARayJobIsWrittenOnlyWhenItMayBe scales the RayCluster of a RayJob, whose spec is the RayJob's, with
// pending demand in every state in which Heliostat must not write. TestCoreLoop freezes growth.
func TestARayClusterOfARayJobIsWrittenOnlyWhenItMayBe(t *testing.T) {
	t.Parallel()
	s := prepare(t, "")
	// In this mode, users submit the job. The operator creates the RayCluster and waits.
	s.owner("RayJob", map[string]any{"submissionMode": "InteractiveMode",
		"rayClusterSpec": rig.Cluster{IdleSeconds: 2, Groups: []rig.Group{gpu}}.Spec()})
	s.annotate("mode", "shadow")
	s.headAlive()

	s.step("neither shadow nor off writes")
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.told("a plan that is not carried out", func(st status) bool {
		return st.Mode == "shadow" && st.group("gpu").Desired == 1
	})
	s.quiet("shadow writes nothing")
	s.annotate("mode", "off")
	s.told("that it is off", func(st status) bool { return st.Mode == "off" })
	s.created("gpu", 0)
	s.annotate("mode", "managed")
	worker := s.workers("gpu", 1)[0]

	s.step("a freeze takes no worker away, and the REST API writes nothing; users can")
	s.annotate("freeze", "true")
	s.k8sEvent("Frozen")
	s.annotate("resource-requests", "")
	s.told("that the worker would go", func(st status) bool { return st.group("gpu").Desired == 0 })
	s.quiet("a freeze takes nothing away")
	if _, stopped := rig.OfPod(s.journal.Facts(), worker, rig.PodStopping); stopped {
		s.Error("the idle worker was stopped")
	}
	s.annotate("freeze", "")
	s.workers("gpu", 0)
	s.leftInOrder()
}

// TestARayClusterOfARayServiceIsScaled scales the RayCluster of a RayService, whose spec is the RayService's.
func TestARayClusterOfARayServiceIsScaled(t *testing.T) {
	t.Parallel()
	s := prepare(t, "")
	s.owner("RayService", map[string]any{"serveConfigV2": "applications: []",
		"rayClusterConfig": rig.Cluster{IdleSeconds: 2, Groups: []rig.Group{gpu}}.Spec()})
	s.headAlive()
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.workers("gpu", 1)
	s.rest(http.MethodDelete, "/request_resources", "")
	s.workers("gpu", 0)
	s.created("gpu", 1)
}

// TestARayClusterIsSuspendedDeletedAndMadeAnew creates a suspended RayCluster, resumes it, deletes it while it has a
// worker, and creates one with the same name.
func TestARayClusterIsSuspendedDeletedAndMadeAnew(t *testing.T) {
	t.Parallel()
	s := prepare(t, "phoenix")
	cluster := rig.Cluster{Namespace: s.namespace, Name: s.name, IdleSeconds: 600, Groups: []rig.Group{sleepers}}
	suspended := cluster.Manifest()
	s.must(unstructured.SetNestedField(suspended.Object, true, "spec", "suspend"))
	s.must(lab.Create(s.ctx, suspended))
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.k8sEvent("Suspended")
	s.quiet("a suspended cluster has no pods")

	s.step("it is resumed")
	s.patch(`{"spec": {"suspend": false}}`)
	s.headAlive()
	s.firstPod("gpu")
	s.created("gpu", 1)

	s.step("it is deleted with its worker")
	s.must(lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).Delete(s.ctx, s.name, metav1.DeleteOptions{}))
	s.eventually("no pod", func(facts []rig.Fact) bool { return len(rig.Living(facts, "gpu")) == 0 })

	s.step("one of the same name has work of its own, and not the request")
	s.create(cluster)
	s.told("that the new one has no demand", func(st status) bool { return st.Mode == "managed" && st.group("gpu").Desired == 0 })
	s.quiet("the request went with the old cluster")
	driver := s.drive()
	s.do(driver, task("anew", 1))
	s.eventually("a pod for the work", func(facts []rig.Fact) bool { return len(rig.Pods(facts, "gpu")) == 2 })
	s.quiet("there is one pod")
	s.created("gpu", 2)
}

// owner creates a RayJob or RayService, and observes the RayCluster that the operator makes for it.
func (s *scene) owner(kind string, spec map[string]any) {
	s.Helper()
	resource := rig.RayJobs
	if kind == "RayService" {
		resource = rig.RayServices
	}
	s.must(lab.CreateAny(s.ctx, resource, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1", "kind": kind, "metadata": map[string]any{"namespace": s.namespace, "name": "owner"}, "spec": spec,
	}}))
	s.name = s.ownedCluster()
	lab.Observe(s.ctx, s.namespace, s.name, s.journal)
}

// annotate sets one of Heliostat's annotations, or removes it when value is empty.
func (s *scene) annotate(key, value string) {
	s.Helper()
	quoted := `"` + value + `"`
	if value == "" {
		quoted = "null"
	}
	s.patch(`{"metadata": {"annotations": {"heliostat.dev/` + key + `": ` + quoted + `}}}`)
}
