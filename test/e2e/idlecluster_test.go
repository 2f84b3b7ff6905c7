package e2e

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/rig"
)

// idleAfter is the shortest time after which a policy suspends a RayCluster without work.
const idleAfter = 10 * time.Minute

// stageIdle creates a RayCluster that is suspended after idleAfter.
func stageIdle(t *testing.T, name string) *scene {
	t.Helper()
	slow(t)
	return stage(t, rig.Cluster{Name: name, IdleSeconds: 5, Groups: []rig.Group{gpu},
		Annotations: map[string]string{"heliostat.dev/capacity-policy": `{"idle": {"suspendAfter": "10m"}}`}})
}

// TestSlowARayClusterWithoutWorkIsSuspended waits until a RayCluster has been without work for long enough. Heliostat
// announces the end and suspends it, and a request resumes it.
func TestSlowARayClusterWithoutWorkIsSuspended(t *testing.T) {
	s := stageIdle(t, "idle")
	driver := s.drive()
	s.do(driver, task("work", 1))
	s.see(driver, "work", "running")
	ended := time.Now()
	s.do(driver, release("work"))
	s.disconnect(driver)
	s.workers("gpu", 0)
	for !s.suspended() {
		if time.Since(ended) > idleAfter+2*time.Minute {
			t.Fatal("the RayCluster is not suspended")
		}
		time.Sleep(time.Second)
	}
	took := time.Since(ended)
	if t.Logf("suspended %v after its last work", took); took < idleAfter {
		t.Errorf("want at least %v", idleAfter)
	}
	s.k8sEvent("IdleAnnounced")
	s.k8sEvent("IdleSuspended")

	asked := time.Now()
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.k8sEvent("IdleResumed")
	s.headAlive()
	s.workers("gpu", 1)
	t.Logf("a worker is alive %v after the request", time.Since(asked))
}

// TestSlowADetachedActorKeepsItsRayCluster leaves a detached actor that takes nothing in a RayCluster.
func TestSlowADetachedActorKeepsItsRayCluster(t *testing.T) {
	s := stageIdle(t, "kept")
	driver := s.drive()
	s.do(driver, rig.Command{Do: "actor", ID: "daemon", Detached: true})
	s.see(driver, "daemon", "running")
	s.disconnect(driver)
	for left := time.Now(); time.Since(left) < idleAfter+2*time.Minute; time.Sleep(5 * time.Second) {
		if s.suspended() {
			t.Fatalf("suspended %v after its driver left", time.Since(left))
		}
	}
}

// disconnect lets a driver leave.
func (s *scene) disconnect(driver *rig.Driver) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	driver.Stop(ctx)
}

func (s *scene) suspended() bool {
	s.Helper()
	suspended, _, err := unstructured.NestedBool(s.object().Object, "spec", "suspend")
	s.must(err)
	return suspended
}
