package nodeagent_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

func TestARayNodeStartsWhenTheOneBeforeIsReady(t *testing.T) {
	place, asked := make(chan struct{}, 1), make(chan struct{}, 2)
	f := newFixtureWith(t, func(cfg *nodeagent.Config) {
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
		pod := f.shell(name, ": ray start; exec sleep 600")
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
			InitialDelaySeconds: 600, // the agent checks without the probe's delay
			ProbeHandler:        corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"bash", "-c", "test -e $HOME/ready"}}},
		}
		return f.create(pod)
	}
	first := f.untilPhase(rayNode("first"), corev1.PodRunning)
	<-asked
	second := rayNode("second")
	<-asked
	f.untilPhase(f.create(f.shell("other", "exit 0")), corev1.PodSucceeded) // not a Ray node, so it does not wait
	if got := f.untilPhase(second, corev1.PodPending); got.Status.ContainerStatuses[0].State.Waiting == nil {
		t.Errorf("the second Ray node is %+v while the first starts", got.Status.ContainerStatuses[0].State)
	}
	if _, err := f.exec(first, "bash", "-c", "touch $HOME/ready"); err != nil {
		t.Fatal(err)
	}
	f.untilPhase(second, corev1.PodRunning)
	f.delete(second) // a Ray node that ends lets the next one start
	f.untilPhase(rayNode("third"), corev1.PodRunning)
}
