package decode

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAPodIsTheSameUntilSomethingChangesThatADecisionDependsOn(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: moment(5)}}
	deleted := moment(9)
	for _, c := range []struct {
		name   string
		kind   string
		change func(*corev1.Pod)
		same   bool
	}{
		{"another version of a worker", workerNode, func(p *corev1.Pod) { p.ResourceVersion = "8" }, true},
		{"a label that nobody reads", workerNode, func(p *corev1.Pod) { p.Labels["team"] = "b" }, true},
		{"a worker that is deleted", workerNode, func(p *corev1.Pod) { p.DeletionTimestamp = &deleted }, false},
		{"a worker on a node", workerNode, func(p *corev1.Pod) { p.Spec.NodeName = "n1" }, false},
		{"a worker of another RayCluster", workerNode, func(p *corev1.Pod) { p.Labels[ClusterLabel] = "other" }, false},
		{"another version of a head", headNode, func(p *corev1.Pod) { p.ResourceVersion = "8" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := pod("p", c.kind, "gpu", rayState(running, 0))
			after := before.DeepCopy()
			c.change(after)
			if got := PodOf(before).Same(PodOf(after)); got != c.same {
				t.Errorf("the same: %t, want %t", got, c.same)
			}
		})
	}
}

func TestAPodThatIsNeitherHeadNorWorkerIsNone(t *testing.T) {
	cluster := Join(Decoded{}, kept(pod("job", "redis-cleanup", "")))
	if cluster.Head.Pod != "" || len(cluster.Workers) != 0 {
		t.Errorf("head %q, workers %v", cluster.Head.Pod, cluster.Workers)
	}
}
