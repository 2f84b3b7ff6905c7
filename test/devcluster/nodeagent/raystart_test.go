package nodeagent_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

func TestARayNodeStartsWhenTheOneBeforeIsReady(t *testing.T) {
	place, asked := make(chan struct{}, 1), make(chan struct{}, 2)
	w := newWorldWith(t, func(cfg *nodeagent.Config) {
		cfg.RayStart = func(ctx context.Context) (func(), error) {
			asked <- struct{}{}
			select {
			case place <- struct{}{}:
				return func() { <-place }, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
	rayNode := func(name string) *corev1.Pod {
		pod := w.shell(name, ": ray start; exec sleep 600")
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
			InitialDelaySeconds: 600, // a place does not wait for the probe's own schedule
			ProbeHandler:        corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"bash", "-c", "test -e $HOME/ready"}}},
		}
		return w.create(pod)
	}
	first := w.untilPhase(rayNode("first"), corev1.PodRunning)
	<-asked
	second := rayNode("second")
	<-asked
	w.untilPhase(w.create(w.shell("other", "exit 0")), corev1.PodSucceeded) // no Ray node, so it waits for nobody
	if got := w.untilPhase(second, corev1.PodPending); got.Status.ContainerStatuses[0].State.Waiting == nil {
		t.Errorf("the second Ray node is %+v while the first starts", got.Status.ContainerStatuses[0].State)
	}
	if _, err := w.exec(first, "bash", "-c", "touch $HOME/ready"); err != nil {
		t.Fatal(err)
	}
	w.untilPhase(second, corev1.PodRunning)
	w.delete(second) // a node that ends gives its place back
	w.untilPhase(rayNode("third"), corev1.PodRunning)
}
