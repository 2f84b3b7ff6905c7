package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// deployed reads the first object of a kind from a file in deploy. An unknown field is an error.
func deployed[T any](t *testing.T, file, kind string) T {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var object T
	for _, document := range strings.Split(string(text), "\n---\n") {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			t.Fatal(err)
		}
		if head.Kind != kind {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		return object
	}
	t.Fatalf("no %s in deploy/%s", kind, file)
	return object
}

func TestTheAgentIsDeployedWithTheRightsItNeedsAndNoOther(t *testing.T) {
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}}}
	if diff := cmp.Diff(want, deployed[rbacv1.ClusterRole](t, "agent.yaml", "ClusterRole").Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	set := deployed[appsv1.DaemonSet](t, "agent.yaml", "DaemonSet")
	account := "system:serviceaccount:" + set.Namespace + ":" + set.Spec.Template.Spec.ServiceAccountName
	policy := deployed[admissionv1.ValidatingAdmissionPolicy](t, "agent.yaml", "ValidatingAdmissionPolicy")
	if got := policy.Spec.MatchConditions[0].Expression; !strings.Contains(got, `"`+account+`"`) {
		t.Errorf("the policy binds %s, the DaemonSet runs as %s", got, account)
	}
	if !slices.ContainsFunc(policy.Spec.Validations, func(v admissionv1.Validation) bool {
		return strings.Contains(v.Expression, `"`+sharing.AgentAnnotation+`"`)
	}) {
		t.Errorf("the policy does not name %s", sharing.AgentAnnotation)
	}
	if bound := deployed[admissionv1.ValidatingAdmissionPolicyBinding](t, "agent.yaml", "ValidatingAdmissionPolicyBinding").Spec.PolicyName; bound != policy.Name {
		t.Errorf("the binding is for %s", bound)
	}
}

func TestTheDeployedAgentHasACommandLineThatIsUnderstood(t *testing.T) {
	container := deployed[appsv1.DaemonSet](t, "agent.yaml", "DaemonSet").Spec.Template.Spec.Containers[0]
	if container.Args[0] != "agent" {
		t.Fatalf("it runs %v", container.Args)
	}
	if err := newAgentCommand(nil).ParseFlags(container.Args[1:]); err != nil {
		t.Error(err)
	}
	if len(container.Resources.Limits) != 1 {
		t.Errorf("limits are %v: the agent must request no GPU", container.Resources.Limits)
	}
}
