package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/rig"
)

// TestAResourceQuotaIsKept has a quota of one GPU in the namespace and demand for two. The API server would refuse the
// second pod, so it is not launched until the quota is raised.
func TestAResourceQuotaIsKept(t *testing.T) {
	t.Parallel()
	one := rig.Group{Name: "gpu", Max: 4, Devices: map[string]int64{"nvidia.com/gpu": 1}}
	s := stage(t, rig.Cluster{Name: "quota", IdleSeconds: 600, Groups: []rig.Group{one}})
	quotas := lab.Kube.CoreV1().ResourceQuotas(s.namespace)
	_, err := quotas.Create(s.ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("1")}}},
		metav1.CreateOptions{})
	s.must(err)
	driver := s.drive()
	s.do(driver, task("first", 1), task("second", 1))
	s.workers("gpu", 1)
	s.told("that the quota has no room", func(st status) bool {
		return st.unmet("capped") && st.group("gpu").because("quota", "ResourceQuota team")
	})
	s.quiet("the quota has no room")
	s.created("gpu", 1)
	_, err = quotas.Patch(s.ctx, "team", types.MergePatchType, []byte(`{"spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}`),
		metav1.PatchOptions{})
	s.must(err)
	s.see(driver, "first", "running")
	s.see(driver, "second", "running")
	s.created("gpu", 2)
}
