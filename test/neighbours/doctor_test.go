package neighbours

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/test/devcluster"
)

// examined covers assertion 9: the doctor reads NodePools and disruption budgets of the real API server, with the real
// CRDs of Karpenter. Kubernetes itself says that the budget over Ray pods cannot work.
func examined(k *karpenterLab) {
	k.nodePool("unguarded", devcluster.NodePool{Name: "unguarded", Class: "fast", ConsolidateAfter: "1h", ExpireAfter: "2h", TerminationGracePeriod: "1m"})
	unused := devcluster.NodePool{Name: "unused", Class: "fast", Types: []string{"unguarded"}, Taints: []corev1.Taint{{Key: "nobody", Effect: corev1.TaintEffectNoSchedule}}}
	must(k, k.Cluster.AddNodePool(k.Context(), unused))
	r := k.rayCluster("unguarded", gpuWorkers("unguarded", 2))
	r.want(1)
	r.until("the worker has joined", func(c apiv1.Cluster) bool { return groupOf(c, "unguarded").Ready == 1 }, nil)
	r.budget("relative", "worker", &policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))})
	r.budget("whole", "head", &policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(0))})

	want := []string{
		"consolidation-unguarded warning NodePool/unguarded spec.disruption.consolidationPolicy",
		"disruption-budget-blocks warning PodDisruptionBudget/unguarded/relative spec.maxUnavailable",
		"expiry-unguarded warning NodePool/unguarded spec.template.spec.expireAfter",
	}
	var got []string
	for _, f := range r.findings() {
		ours := slices.ContainsFunc([]string{"NodePool/un", "PodDisruptionBudget/unguarded/"}, func(o string) bool { return strings.HasPrefix(f.Object, o) })
		if ours {
			got = append(got, fmt.Sprintf("%s %s %s %s", f.Code, f.Severity, f.Object, f.Field))
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		k.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if said := r.allows("relative"); !strings.Contains(said, "rayclusters.ray.io does not implement the scale subresource") {
		k.Errorf("Kubernetes says of the budget with maxUnavailable: %s", said)
	}
	if said := r.allows("whole"); !strings.HasPrefix(said, "SufficientPods") {
		k.Errorf("Kubernetes says of the budget with a whole number in minAvailable: %s", said)
	}
}

// budget creates a PodDisruptionBudget over the heads or workers of the RayCluster.
func (r *rayTeam) budget(name, kind string, spec *policyv1.PodDisruptionBudgetSpec) {
	r.Helper()
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"ray.io/cluster": r.key.Name, "ray.io/node-type": kind}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *spec}
	if _, err := r.Kube.PolicyV1().PodDisruptionBudgets(r.key.Namespace).Create(r.Context(), budget, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// allows returns reason and message of the condition in which Kubernetes says whether a budget allows evictions.
func (r *rayTeam) allows(name string) string {
	r.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		budget, err := r.Kube.PolicyV1().PodDisruptionBudgets(r.key.Namespace).Get(r.Context(), name, metav1.GetOptions{})
		must(r, err)
		for _, c := range budget.Status.Conditions {
			if c.Type == policyv1.DisruptionAllowedCondition {
				return c.Reason + ": " + c.Message
			}
		}
	}
	return "nothing"
}

// findings runs `autoscaler doctor` on all namespaces.
func (r *rayTeam) findings() []doctor.Finding {
	r.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(r.Context(), r.Program, "doctor", "--kubeconfig", r.Cluster.Kubeconfig(), "-o", "json")
	cmd.Stdout, cmd.Stderr = &out, &errOut
	_ = cmd.Run() // other scenarios have errors
	var report struct{ Findings []doctor.Finding }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		r.Fatalf("%v: %s%s", err, out.String(), errOut.String())
	}
	return report.Findings
}
