package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

const agentAccount = "heliostat-agent"

// gpuNode creates a Node that accepts no pods from the scheduler. The test deletes it, with its pods, when it ends.
func (s *scene) gpuNode(name string) {
	s.Helper()
	nodes := lab.Client().CoreV1().Nodes()
	node, err := nodes.Create(s.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "1",
		}, Annotations: map[string]string{"example.com/owner": "ml"}},
		Spec: corev1.NodeSpec{Unschedulable: true},
	}, metav1.CreateOptions{})
	must(s, err)
	s.Cleanup(func() {
		if err := nodes.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
	node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	node.Status.Capacity = node.Status.Allocatable
	if _, err := nodes.UpdateStatus(s.Context(), node, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// agentPod creates the pod that the DaemonSet of deploy/agent.yaml would create on the node, and returns its token.
func (s *scene) agentPod(node string) string {
	s.Helper()
	set, err := lab.Client().AppsV1().DaemonSets(s.namespace).Get(s.Context(), agentAccount, metav1.GetOptions{})
	must(s, err)
	template := set.Spec.Template
	template.Spec.NodeName = node
	pods := lab.Client().CoreV1().Pods(s.namespace)
	pod, err := pods.Create(s.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: agentAccount + "-", Labels: template.Labels}, Spec: template.Spec,
	}, metav1.CreateOptions{})
	must(s, err)
	s.Cleanup(func() {
		if err := pods.Delete(context.Background(), pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
			s.Error(err)
		}
	})
	return s.token(&authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID})
}

// token returns a token of the agent's account, bound to the pod, as the kubelet requests it.
func (s *scene) token(bound *authenticationv1.BoundObjectReference) string {
	s.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}
	reply, err := lab.Client().CoreV1().ServiceAccounts(s.namespace).CreateToken(s.Context(), agentAccount, request, metav1.CreateOptions{})
	must(s, err)
	return reply.Status.Token
}

func (s *scene) config(token string) *rest.Config {
	config := rest.AnonymousClientConfig(lab.RESTConfig())
	config.BearerToken = token
	return config
}

// patcher returns a function that patches nodes with a token.
func (s *scene) patcher(token string) func(node, patch string, subresources ...string) error {
	s.Helper()
	client, err := kubernetes.NewForConfig(s.config(token))
	must(s, err)
	return func(node, patch string, subresources ...string) error {
		_, err := client.CoreV1().Nodes().Patch(s.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		return err
	}
}

func oneCard(t *testing.T, problem string) string {
	t.Helper()
	value, err := sharing.AgentReport{Cards: []gpuinfo.Card{{
		UUID: "GPU-1", Product: "NVIDIA A100-SXM4-40GB", Memory: new(gpuinfo.MiB(40960)), Free: new(gpuinfo.MiB(40000)), Healthy: problem == "", Problem: problem,
	}}}.Annotation()
	must(t, err)
	return value
}

// deployedAgent applies deploy/agent.yaml, creates two nodes and an agent on the first, and waits until the policy is
// in force.
func deployedAgent(t *testing.T) (s *scene, token string) {
	t.Helper()
	s = deployment(t)
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "nvidia"}, Handler: "nvidia"}
	if _, err := lab.Client().NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	applyFile(t, "../../../deploy/agent.yaml")
	s.gpuNode("gpu-1")
	s.gpuNode("gpu-2")
	token = s.agentPod("gpu-1")
	patch, number := s.patcher(token), 0
	s.until("the policy to hold", func() bool {
		number++ // the API server skips the policy for a patch without changes
		err := patch("gpu-2", fmt.Sprintf(`{"metadata":{"annotations":{"heliostat.dev/gpus":"%d"}}}`, number))
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "and no other")
	})
	return s, token
}

// TestAnAgentMayAnnotateItsOwnNodeAndNothingElse checks that a real API server enforces the RBAC rules and the policy.
// Only these keep a compromised agent from writing to every node.
func TestAnAgentMayAnnotateItsOwnNodeAndNothingElse(t *testing.T) {
	s, token := deployedAgent(t)
	node, err := kube.NewAgentNode(s.config(token), "gpu-1")
	must(t, err)
	for _, step := range []struct {
		problem string
		written bool
	}{{"", true}, {"", false}, {"XID 79: the card has fallen off the bus", true}} {
		if written, err := node.Publish(t.Context(), oneCard(t, step.problem)); err != nil || written != step.written {
			t.Errorf("card with problem %q: written %v, %v; want %v", step.problem, written, err, step.written)
		}
	}
	set, err := kube.ListNodes(t.Context(), lab.RESTConfig())
	must(t, err)
	for _, object := range set.Nodes() {
		read := sharing.Reader{}.Read(object)
		if object.Name != "gpu-1" {
			continue
		}
		if len(read.PerCard) != 1 || read.PerCard[0].Problem != "XID 79: the card has fallen off the bus" {
			t.Errorf("nodepool reads %+v", read.PerCard)
		}
	}
	s.agentRefused(token)
}

func (s *scene) agentRefused(token string) {
	s.Helper()
	const own = "and no other"
	patch := s.patcher(token)
	for name, try := range map[string]struct {
		node, patch string
		subresource []string
		says        string
	}{
		"the annotation of another node":    {"gpu-2", `{"metadata":{"annotations":{"heliostat.dev/gpus":"{}"}}}`, nil, own},
		"another annotation":                {"gpu-1", `{"metadata":{"annotations":{"heliostat.dev/freeze":"true"}}}`, nil, own},
		"another annotation beside its own": {"gpu-1", `{"metadata":{"annotations":{"heliostat.dev/gpus":"{}","a":"b"}}}`, nil, own},
		"a changed annotation of another":   {"gpu-1", `{"metadata":{"annotations":{"example.com/owner":"me"}}}`, nil, own},
		"a removed annotation of another":   {"gpu-1", `{"metadata":{"annotations":{"example.com/owner":null}}}`, nil, own},
		"all annotations removed":           {"gpu-1", `{"metadata":{"annotations":null}}`, nil, own},
		"a new label":                       {"gpu-1", `{"metadata":{"labels":{"nvidia.com/gpu.count":"8","a":"b"}}}`, nil, "nothing else of a node"},
		"a removed label":                   {"gpu-1", `{"metadata":{"labels":{"nvidia.com/gpu.product":null}}}`, nil, "nothing else of a node"},
		"a finalizer":                       {"gpu-1", `{"metadata":{"finalizers":["example.com/mine"]}}`, nil, "nothing else of a node"},
		"a taint":                           {"gpu-1", `{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`, nil, "nothing else of a node"},
		"an end to cordoning":               {"gpu-1", `{"spec":{"unschedulable":false}}`, nil, "nothing else of a node"},
		"a taint beside its own annotation": {"gpu-1", `{"metadata":{"annotations":{"heliostat.dev/gpus":"{}"}},"spec":{"unschedulable":false}}`, nil, "nothing else of a node"},
		"the status":                        {"gpu-1", `{"status":{"allocatable":{"nvidia.com/gpu":"9"}}}`, []string{"status"}, `cannot patch resource "nodes/status"`},
		"the status of another node":        {"gpu-2", `{"status":{"allocatable":{"nvidia.com/gpu":"9"}}}`, []string{"status"}, `cannot patch resource "nodes/status"`},
	} {
		if err := patch(try.node, try.patch, try.subresource...); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), try.says) {
			s.Errorf("%s: got %v, want it to be forbidden with %q", name, err, try.says)
		}
	}
	// A token that is not bound to a pod has no node name.
	if err := s.patcher(s.token(nil))("gpu-1", `{"metadata":{"annotations":{"heliostat.dev/gpus":"{}"}}}`); !apierrors.IsForbidden(err) {
		s.Errorf("a token without a pod: %v", err)
	}
	client, err := kubernetes.NewForConfig(s.config(token))
	must(s, err)
	if _, err := client.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		s.Errorf("listing nodes: %v", err)
	}
	if err := client.CoreV1().Nodes().Delete(s.Context(), "gpu-1", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		s.Errorf("deleting its node: %v", err)
	}
	if _, err := client.CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		s.Errorf("listing pods: %v", err)
	}
	// The policy does not apply to other users, and they can remove the agent's annotations.
	if _, err := lab.Client().CoreV1().Nodes().Patch(s.Context(), "gpu-1", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"b"},"annotations":{"heliostat.dev/gpus":null}}}`), metav1.PatchOptions{}); err != nil {
		s.Error(err)
	}
}

// deployment returns the namespace that the files in deploy use. Tests share it.
func deployment(t *testing.T) *scene {
	t.Helper()
	name := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "heliostat"}}
	if _, err := lab.Client().CoreV1().Namespaces().Create(t.Context(), name, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return &scene{T: t, namespace: name.Name}
}
