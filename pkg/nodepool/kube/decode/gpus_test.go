package decode

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPodNamesItsGPUs(t *testing.T) {
	const one, two = "GPU-3f1a0000-0000-0000-0000-000000000001", "GPU-3f1a0000-0000-0000-0000-000000000002"
	status := func(name, id string, health corev1.ResourceHealthStatus) corev1.ResourceStatus {
		return corev1.ResourceStatus{Name: corev1.ResourceName(name), Resources: []corev1.ResourceHealth{{ResourceID: corev1.ResourceID(id), Health: health}}}
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		statuses    []corev1.ResourceStatus
		want        map[string]bool
	}{
		"no word of it": {},
		"a device plugin": {statuses: []corev1.ResourceStatus{status("nvidia.com/gpu", one, "Unhealthy"), status("rdma/hca", "mlx5_0", "Healthy")},
			want: map[string]bool{one: false}},
		"an instance": {statuses: []corev1.ResourceStatus{status("nvidia.com/mig-1g.10gb", "MIG-1", "Healthy")}, want: map[string]bool{"MIG-1": true}},
		"Dynamic Resource Allocation": {statuses: []corev1.ResourceStatus{status("claim:cards/one", "gpu.nvidia.com/n7/gpu-3", "Unknown")},
			want: map[string]bool{"gpu.nvidia.com/n7/gpu-3": true}},
		"HAMi": {annotations: map[string]string{"hami.io/vgpu-devices-allocated": one + ",NVIDIA,3000,0:" + two + ",NVIDIA,3000,0:;"},
			want: map[string]bool{one: true, two: true}},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{AllocatedResourcesStatus: c.statuses}}}}
		if diff := cmp.Diff(c.want, worker(pod).GPUs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
