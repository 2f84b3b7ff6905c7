package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/rig"
)

// TestAResourceQuotaIsKept has a quota of one GPU in the namespace and demand for two. The API server would refuse the
// second pod, so it is not launched until the quota is raised. Before, a LimitRange refuses all pods of the group.
func TestAResourceQuotaIsKept(t *testing.T) {
	t.Parallel()
	one := rig.Group{Name: "gpu", Max: 4, Devices: map[string]int64{"nvidia.com/gpu": 1}}
	s := stage(t, rig.Cluster{Name: "quota", IdleSeconds: 600, Groups: []rig.Group{one}})
	limits := lab.Kube.CoreV1().LimitRanges(s.namespace)
	_, err := limits.Create(s.ctx, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"cpu": resource.MustParse("500m")}}}}},
		metav1.CreateOptions{})
	s.must(err)
	quotas := lab.Kube.CoreV1().ResourceQuotas(s.namespace)
	_, err = quotas.Create(s.ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("1")}}},
		metav1.CreateOptions{})
	s.must(err)
	driver := s.drive()
	s.do(driver, task("first", 1), task("second", 1))
	s.told("that the LimitRange refuses the pods", func(st status) bool {
		return slices.ContainsFunc(st.Findings, func(f struct{ Code, Field string }) bool {
			return f.Code == "pods-refused" && strings.HasSuffix(f.Field, "resources.limits.cpu")
		})
	})
	s.quiet("no pod of the group would be accepted")
	s.created("gpu", 0)
	s.must(limits.Delete(s.ctx, "small", metav1.DeleteOptions{}))
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
