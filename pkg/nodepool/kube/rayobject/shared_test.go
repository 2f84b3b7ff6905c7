package rayobject

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestStrippedWorkersShareTheirContainer(t *testing.T) {
	strip := func(container string) *corev1.Container {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: "ray"}, {Name: "log"}}}}
		stripped, err := StripPod(pod)
		if err != nil {
			t.Fatal(err)
		}
		containers := stripped.(*corev1.Pod).Spec.Containers
		if len(containers) != 1 || containers[0].Name != container || containers[0].Image != "" {
			t.Fatalf("containers %+v, want %s alone", containers, container)
		}
		return &containers[0]
	}
	first := strip("ray-worker")
	if strip("ray-worker") != first {
		t.Error("a second pod has a container of its own")
	}
	strip("other")
}
