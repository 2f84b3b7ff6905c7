package e2e

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/rig"
)

// TestWhoMayNotWriteDoesNotWrite puts one RayCluster with pending demand into every state in which Heliostat must not
// write.
func TestWhoMayNotWriteDoesNotWrite(t *testing.T) {
	t.Parallel()
	s := stage(t, rig.Cluster{
		Name: "rules", IdleSeconds: 5, Groups: []rig.Group{gpu},
		Annotations: map[string]string{"heliostat.dev/mode": "shadow"},
	})
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.told("a plan that is not carried out", func(st status) bool {
		return st.Mode == "shadow" && len(st.Groups) == 1 && st.Groups[0].Desired == 1
	})
	s.quiet("shadow writes nothing")

	s.annotate("mode", "off")
	s.quiet("off writes nothing")

	s.annotate("freeze", "true")
	s.annotate("mode", "managed")
	s.k8sEvent("Frozen")
	s.quiet("frozen writes nothing")

	s.annotate("freeze", "")
	worker := s.workers("gpu", 1)[0]

	// In a frozen RayCluster, Heliostat also removes no workers, and the REST API writes nothing. Users can still
	// write.
	s.annotate("freeze", "true")
	status, _, err := fleet.Call(s.ctx, http.MethodDelete, rig.RequestPath(s.namespace, s.name), "")
	if err != nil || status < http.StatusBadRequest {
		s.Errorf("clearing the request of a frozen cluster: status %d, %v; want a problem", status, err)
	}
	s.annotate("resource-requests", "")
	time.Sleep(6 * time.Second) // the idle timeout, and a second
	s.quiet("frozen takes nothing away")
	if _, stopped := rig.OfPod(s.journal.Facts(), worker, rig.PodStopping); stopped {
		s.Error("the idle worker was stopped")
	}
	s.annotate("freeze", "")
	s.workers("gpu", 0)
	s.drainedBeforeStopped()
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

// TestASuspendedClusterIsLeftAlone suspends a RayCluster, whose pods the operator then deletes, and resumes it.
func TestASuspendedClusterIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := prepare(t, "sleeper")
	cluster := rig.Cluster{Namespace: s.namespace, Name: s.name, IdleSeconds: 5, Groups: []rig.Group{gpu}}.Manifest()
	s.must(unstructured.SetNestedField(cluster.Object, true, "spec", "suspend"))
	s.must(lab.Create(s.ctx, cluster))
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.k8sEvent("Suspended")
	s.quiet("a suspended cluster has no pods")
	s.patch(`{"spec": {"suspend": false}}`)
	s.headAlive()
	s.workers("gpu", 1)
}

// TestADeletedAndRecreatedClusterStartsAnew deletes a RayCluster that has a worker and creates one with the same name.
func TestADeletedAndRecreatedClusterStartsAnew(t *testing.T) {
	t.Parallel()
	cluster := rig.Cluster{Name: "phoenix", IdleSeconds: 5, Groups: []rig.Group{gpu}}
	s := stage(t, cluster)
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.workers("gpu", 1)
	s.must(lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).Delete(s.ctx, s.name, metav1.DeleteOptions{}))
	s.workers("gpu", 0)

	cluster.Namespace = s.namespace
	s.create(cluster)
	s.quiet("the request went with the old cluster")
	driver := s.drive()
	s.do(driver, task("anew", 1))
	s.see(driver, "anew", "running")
	s.created("gpu", 2)
}
