package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/cmd/autoscaler/engine"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// served returns the Deployment of deploy/heliostat.yaml and its container.
func served(t *testing.T) (appsv1.Deployment, corev1.Container) {
	t.Helper()
	d := deployed[appsv1.Deployment](t, "heliostat.yaml", "Deployment")
	if n := len(d.Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("%d containers", n)
	}
	return d, d.Spec.Template.Spec.Containers[0]
}

func TestTheDeploymentHasACommandLineThatIsUnderstood(t *testing.T) {
	d, c := served(t)
	if !slices.Equal(c.Command, []string{"autoscaler"}) || len(c.Args) == 0 || c.Args[0] != "serve" {
		t.Fatalf("it runs %v %v", c.Command, c.Args)
	}
	command := engine.Serve()
	var args []string
	for _, arg := range c.Args[1:] { // as the kubelet does
		args = append(args, strings.NewReplacer("$(POD_NAMESPACE)", "heliostat", "$(POD_IP)", "10.0.0.1").Replace(arg))
	}
	if err := command.ParseFlags(args); err != nil {
		t.Error(err)
	}
	if args = command.Flags().Args(); len(args) > 0 {
		t.Errorf("arguments beside flags: %v", args)
	}
	elects, err := command.Flags().GetBool("leader-elect")
	if replicas := *d.Spec.Replicas; err != nil || replicas > 1 && !elects {
		t.Errorf("%d replicas without --leader-elect would all decide, %v", replicas, err)
	}
}

func TestTheDeploymentHasTheAccountAndTheLeaseThatTheRightsAreFor(t *testing.T) {
	d, c := served(t)
	binding := deployed[rbacv1.ClusterRoleBinding](t, "rbac.yaml", "ClusterRoleBinding")
	if s := binding.Subjects[0]; s.Name != d.Spec.Template.Spec.ServiceAccountName || s.Namespace != d.Namespace {
		t.Errorf("rights are those of %s/%s, the pods run as %s/%s", s.Namespace, s.Name, d.Namespace, d.Spec.Template.Spec.ServiceAccountName)
	}
	if got := argument(t, c, "lease-namespace"); got != "$(POD_NAMESPACE)" {
		t.Errorf("the lease is in namespace %s, the rights on it in that of the pod", got)
	}
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("pods have no label %s=%s", key, value)
		}
	}
}

// argument returns the value of a flag on the container's command line.
func argument(t *testing.T, c corev1.Container, flag string) string {
	t.Helper()
	for _, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, "--"+flag+"="); ok {
			return value
		}
	}
	t.Fatalf("no --%s in %v", flag, c.Args)
	return ""
}

func TestTheProbesOfTheDeploymentAskWhereItAnswersThem(t *testing.T) {
	_, c := served(t)
	ports := map[string]string{}
	for _, port := range c.Ports {
		ports[port.Name] = fmt.Sprintf(":%d", port.ContainerPort)
	}
	if got, want := ports["metrics"], argument(t, c, "metrics-bind-address"); got != want {
		t.Errorf("the port of metrics is %s, --metrics-bind-address is %s", got, want)
	}
	var ready error
	answers := engine.Probes(func() error { return ready })
	for name, probe := range map[string]*corev1.Probe{"liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if got, want := ports[probe.HTTPGet.Port.String()], argument(t, c, "health-probe-bind-address"); got != want {
			t.Errorf("the %s probe asks %s, --health-probe-bind-address is %s", name, got, want)
		}
		handler, ok := answers[probe.HTTPGet.Path]
		if !ok {
			t.Fatalf("nobody answers %s", probe.HTTPGet.Path)
		}
		for _, ready = range []error{nil, errors.New("not yet")} {
			got := httptest.NewRecorder()
			handler.ServeHTTP(got, httptest.NewRequest(http.MethodGet, probe.HTTPGet.Path, nil))
			want := ready == nil || name == "liveness"
			if (got.Code == http.StatusOK) != want {
				t.Errorf("%s probe while readiness is %v: status %d", name, ready, got.Code)
			}
		}
	}
}

// deployed reads the first object of a kind from a file in deploy. An unknown field is an error.
func deployed[T any](t *testing.T, file, kind string) T {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + file)
	must(t, err)
	var object T
	for _, document := range strings.Split(string(text), "\n---\n") {
		var head metav1.TypeMeta
		must(t, yaml.Unmarshal([]byte(document), &head))
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
