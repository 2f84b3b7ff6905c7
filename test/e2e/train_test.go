package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/rig"
)

// trains starts a training job without an end on one GPU, and returns its driver and the first worker that reports a
// checkpoint.
func (s *scene) trains(layer string) (*rig.Driver, string) {
	s.Helper()
	driver := s.driveData(layer)
	s.do(driver, rig.Command{Do: "fit", ID: "train", Workers: 1, Resources: map[string]float64{"GPU": 1}, Seconds: 2})
	return driver, s.see(driver, "train", "step").Pod
}

// resumed waits until a worker other than left reports a checkpoint after at, and asserts that the training lost at most
// one step. It returns the worker.
func (s *scene) resumed(driver *rig.Driver, left string, at time.Time) (pod string) {
	s.Helper()
	s.until("the training to continue", func() bool {
		last := 0
		for _, e := range driver.Events() {
			switch {
			case e.ID != "train" || e.Event != "step":
			case e.Pod == left:
				last = e.Step
			case e.At.After(at):
				s.Logf("the last checkpoint before was of step %d, the first after that of step %d, %.0f s later", last, e.Step, e.At.Sub(at).Seconds())
				if e.Step < last {
					s.Errorf("the training lost %d steps", last+1-e.Step)
				}
				pod = e.Pod
				return true
			}
		}
		return false
	})
	return pod
}

// TestTrainResumesAfterAGiveBack takes the only GPU of a training job by force. After the reservation, the job continues on
// a new worker, and at most one step is done again. It runs alone, as the tests of Serve do.
func TestTrainResumesAfterAGiveBack(t *testing.T) {
	layer := layerOf(t, rayData)
	s := stageLayer(t, layer, map[string]any{"num-cpus": "1"}, rig.Cluster{Name: "traingives", IdleSeconds: 300,
		Groups: []rig.Group{{Name: "gpu", CPU: "1", Max: 2, Devices: map[string]int64{"nvidia.com/gpu": 1}}}})
	driver, first := s.trains(layer)

	asked := time.Now()
	s.giveBack(`{"gpus": 1, "group": "gpu", "deadlineSeconds": 60, "force": true}`)
	s.workers("gpu", 0)
	s.quiet("the group is held down")
	s.rest("DELETE", "/give_back", "")
	s.resumed(driver, first, asked)
	s.created("gpu", 2)
}

// TestTrainLeavesABadGPU breaks the GPU of a training job. The replacement joins while the job still runs. Ray Train moves
// there from its last checkpoint when the drain's deadline of ten minutes is over, and the empty worker goes by name.
func TestTrainLeavesABadGPU(t *testing.T) {
	slow(t)
	layer := layerOf(t, rayData)
	s := stageLayer(t, layer, map[string]any{"num-cpus": "1"}, rig.Cluster{Name: "trainbad", IdleSeconds: 900,
		Groups: []rig.Group{{Name: "gpu", CPU: "1", Max: 2, Devices: map[string]int64{"amd.com/gpu": 1}, NodeSelector: map[string]string{"gpus": "repair"}}}})
	driver, bad := s.trains(layer)
	pod, err := lab.Kube.CoreV1().Pods(s.namespace).Get(s.ctx, bad, metav1.GetOptions{})
	s.must(err)
	s.condition(pod.Spec.NodeName, "XIDErrors", corev1.ConditionTrue, "XID 79 on GPU 0")
	defer s.condition(pod.Spec.NodeName, "XIDErrors", corev1.ConditionFalse, "")
	s.departure(bad, true, "XID 79 on GPU 0")
	s.workers("gpu", 2)
	drained := time.Now()
	s.quiet("the training still runs")
	s.must(s.journal.Wait(s.ctx, "the worker to go", func(facts []rig.Fact) bool { _, gone := rig.OfPod(facts, bad, rig.PodGone); return gone }))
	if _, named := rig.OfPod(s.journal.Facts(), bad, rig.Named); !named {
		t.Error("the worker went without its name")
	}
	s.drainedBeforeStopped()
	s.resumed(driver, bad, drained)
	s.created("gpu", 2)
}
