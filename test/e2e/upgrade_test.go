package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/rig"
)

// TestAnUpgradeOfARayServiceStartsWithTheWorkersOfTheOlderRayCluster has a RayService whose RayCluster serves with two
// replicas. A second RayCluster appears, as in an upgrade. The operator makes one only when it can call Serve, and the
// dev cluster has no DNS for that, so the test copies the first one, with the RayService as its owner. Nothing is
// deployed on it, so its two workers come because of the policy alone, which the operator has copied from the RayService.
func TestAnUpgradeOfARayServiceStartsWithTheWorkersOfTheOlderRayCluster(t *testing.T) {
	t.Parallel()
	layer := layerOf(t, rayServe)
	s := prepare(t, "")
	spec := rig.Cluster{IdleSeconds: 300, Groups: []rig.Group{{Name: "cpu", CPU: "1", Max: 4}}}.Spec()
	setEnv(spec["headGroupSpec"].(map[string]any), layer)
	setEnv(spec["workerGroupSpecs"].([]any)[0].(map[string]any), layer)
	s.must(lab.CreateAny(s.ctx, rig.RayServices, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayService",
		"metadata": map[string]any{"namespace": s.namespace, "name": "service",
			"annotations": map[string]any{"heliostat.dev/capacity-policy": `{"onUpgrade": "match"}`}},
		// The older RayCluster never serves for the operator, which would otherwise delete it a minute later.
		"spec": map[string]any{"serveConfigV2": "applications: []", "rayClusterDeletionDelaySeconds": int64(900),
			"rayClusterConfig": spec},
	}}))
	s.name = s.ownedCluster()
	lab.Observe(s.ctx, s.namespace, s.name, s.journal)
	s.headAlive()
	driver := s.driveData(layer)
	s.do(driver, rig.Command{Do: "serve", ID: "app", Workers: 2})
	s.see(driver, "app", "running")
	s.workers("cpu", 2)

	newer := *s
	newer.name = s.copied()
	began := time.Now()
	newer.journal = rig.NewJournal(func(f rig.Fact) {
		t.Logf("newer %7.2fs %-14s %-5s %s %s", f.At.Sub(began).Seconds(), f.Stage, f.Group, f.Pod, f.Detail)
	})
	lab.Observe(s.ctx, s.namespace, newer.name, newer.journal)
	newer.workers("cpu", 2)
	t.Logf("two workers %.1f s after the upgrade began, although nothing waits there", time.Since(began).Seconds())
	newer.quiet("the room is there")
	newer.created("cpu", 2)
	s.created("cpu", 2)
	s.do(driver, rig.Command{Do: "release", ID: "app"})
}

// copied makes a RayCluster like the scene's, with the same owner, and returns its name.
func (s *scene) copied() string {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	older := s.object()
	newer := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": older.Object["spec"]}}
	newer.SetNamespace(s.namespace)
	newer.SetName(older.GetName() + "-new")
	newer.SetLabels(older.GetLabels())
	newer.SetAnnotations(older.GetAnnotations())
	newer.SetOwnerReferences(older.GetOwnerReferences())
	for _, group := range newer.Object["spec"].(map[string]any)["workerGroupSpecs"].([]any) {
		group.(map[string]any)["replicas"] = int64(0)
	}
	_, err := lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).Create(ctx, newer, metav1.CreateOptions{})
	s.must(err)
	return newer.GetName()
}
