package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/rig"
)

// condition sets a condition of a node, as its problem detector does.
func (s *scene) condition(node, kind string, status corev1.ConditionStatus, message string) {
	s.Helper()
	s.until("the condition is set", func() bool {
		object, err := lab.Kube.CoreV1().Nodes().Get(s.ctx, node, metav1.GetOptions{})
		s.must(err)
		set := corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status, Message: message, LastTransitionTime: metav1.Now()}
		for i := range object.Status.Conditions {
			if c := &object.Status.Conditions[i]; c.Type == set.Type {
				*c, set.Type = set, ""
			}
		}
		if set.Type != "" {
			object.Status.Conditions = append(object.Status.Conditions, set)
		}
		_, err = lab.Kube.CoreV1().Nodes().UpdateStatus(s.ctx, object, metav1.UpdateOptions{})
		return err == nil
	})
}

// TestABadGPUCostsOneDrain breaks a card under a task that Ray never tries again. The worker is drained once the sign has
// lasted, its replacement comes before it goes, the task finishes, and the worker goes by name. A card that is well again
// is used again.
func TestABadGPUCostsOneDrain(t *testing.T) {
	t.Parallel()
	one := rig.Group{Name: "gpu", Max: 4, Devices: map[string]int64{"amd.com/gpu": 1}, NodeSelector: map[string]string{"gpus": "repair"}}
	s := stage(t, rig.Cluster{Name: "badgpu", IdleSeconds: 600, Groups: []rig.Group{one}})
	driver := s.drive()
	s.do(driver, task("once", 1))
	bad := s.see(driver, "once", "running").Pod
	pod, err := lab.Kube.CoreV1().Pods(s.namespace).Get(s.ctx, bad, metav1.GetOptions{})
	s.must(err)
	node := pod.Spec.NodeName

	s.step("a sign that comes and goes drains nothing")
	s.condition(node, "XIDErrors", corev1.ConditionTrue, "XID 79 on GPU 0")
	s.departure(bad, false, "XID 79 on GPU 0")
	s.condition(node, "XIDErrors", corev1.ConditionFalse, "")
	s.until("the sign is gone", func() bool { return len(s.departures()) == 0 })

	s.step("one that lasts costs a drain, and the replacement comes first")
	set := time.Now()
	s.condition(node, "XIDErrors", corev1.ConditionTrue, "XID 79 on GPU 0")
	s.departure(bad, true, "XID 79 on GPU 0")
	if waited := time.Since(set); waited < 50*time.Second {
		s.Errorf("drained after %v", waited)
	}
	pods := s.workers("gpu", 2)
	s.eventually("the drain", func(facts []rig.Fact) bool { _, drained := rig.OfPod(facts, bad, rig.Drained); return drained })
	if e := s.k8sEvent("BadGPU"); e.Type != corev1.EventTypeWarning || !strings.Contains(e.Message, bad+": bad GPU: condition XIDErrors is True, on node "+node) {
		s.Errorf("Event %s %s", e.Type, e.Message)
	}
	s.quiet("the task still runs")
	if _, named := rig.OfPod(s.journal.Facts(), bad, rig.Named); named {
		s.Fatal("a worker with work was named")
	}

	s.step("the task finishes, and the worker goes by name")
	s.do(driver, release("once"))
	s.see(driver, "once", "released")
	s.eventually("the worker goes by name", func(facts []rig.Fact) bool { _, gone := rig.OfPod(facts, bad, rig.PodGone); return gone })
	if _, named := rig.OfPod(s.journal.Facts(), bad, rig.Named); !named {
		s.Error("the worker went without its name")
	}
	s.drainedBeforeStopped()
	s.do(driver, task("moved", 1))
	if ran := s.see(driver, "moved", "running").Pod; ran == bad || ran != pods[0] && ran != pods[1] {
		s.Errorf("further work ran on %s, want the replacement among %v", ran, pods)
	}

	s.step("a card that is well again is used again")
	s.condition(node, "XIDErrors", corev1.ConditionFalse, "")
	s.do(driver, task("again", 1))
	again, err := lab.Kube.CoreV1().Pods(s.namespace).Get(s.ctx, s.see(driver, "again", "running").Pod, metav1.GetOptions{})
	s.must(err)
	if again.Spec.NodeName != node {
		s.Errorf("ran on %s, want %s", again.Spec.NodeName, node)
	}
}

// departures are the workers that leave or may, as REST tells.
func (s *scene) departures() (all []struct {
	Pod, Sign, Message string
	Certain            bool
}) {
	s.Helper()
	got := struct {
		Departures any
	}{&all}
	s.must(json.Unmarshal(s.rest(http.MethodGet, "", ""), &got))
	return all
}

// departure waits until REST tells that a worker has a bad GPU, and whether it is drained for that.
func (s *scene) departure(pod string, certain bool, message string) {
	s.Helper()
	s.until(pod+" shows its bad GPU", func() bool {
		for _, d := range s.departures() {
			if d.Pod == pod && d.Sign == "bad-gpu" && d.Certain == certain && strings.Contains(d.Message, message) {
				return true
			}
		}
		return false
	})
}
