package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodes"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
)

// admitted is the label of the pods that may run on the nodes of addNode.
const admitted = "heliostat.dev/admitted"

// addNode registers a node of an AKS pool as a kubelet would. A pod on it keeps away the pods of all other tests, which
// tolerate every taint: on a node without a kubelet they would never end, and they would take its room.
func (s *scene) addNode(name, pool string) {
	s.Helper()
	s.podOn(name, s.namespace, "guard-of-"+name, corev1.ResourceList{}, &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, NamespaceSelector: &metav1.LabelSelector{},
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: admitted, Operator: metav1.LabelSelectorOpDoesNotExist}}},
		}},
	}})
	nodes := lab.Client().CoreV1().Nodes()
	node, err := nodes.Create(s.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.azure.com/agentpool": pool, corev1.LabelHostname: name}},
	}, metav1.CreateOptions{})
	must(s, err)
	s.Cleanup(func() {
		if err := nodes.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("110")}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if _, err := nodes.UpdateStatus(s.Context(), node, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// admit labels the worker pods of a RayCluster, so that they may run on the nodes of addNode.
func admit(manifest *unstructured.Unstructured) {
	for _, group := range manifest.Object["spec"].(map[string]any)["workerGroupSpecs"].([]any) {
		template := group.(map[string]any)["template"].(map[string]any)
		if err := unstructured.SetNestedField(template, "true", "metadata", "labels", admitted); err != nil {
			panic(err)
		}
	}
}

// allow binds a role to one of the test's own users.
func (s *scene) allow(user, name string, rules ...rbacv1.PolicyRule) {
	s.Helper()
	rbac := lab.Client().RbacV1()
	_, err := rbac.ClusterRoles().Create(s.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	must(s, err)
	_, err = rbac.ClusterRoleBindings().Create(s.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	must(s, err)
}

// TestCeilingsOfTheClusterAutoscalerBoundPoolsForWhoMayReadThem writes a status as the Cluster Autoscaler does. The
// status limits a pool for every user who may read it. Karpenter is not installed, which is not an error.
func TestCeilingsOfTheClusterAutoscalerBoundPoolsForWhoMayReadThem(t *testing.T) {
	t.Parallel()
	s := stage(t, "ceilings")
	s.addNode("ceilings-0", "ceilings")
	status := lab.Client().CoreV1().ConfigMaps(s.namespace)
	_, err := status.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "cluster-autoscaler-status",
			Annotations: map[string]string{"cluster-autoscaler.kubernetes.io/last-updated": time.Now().UTC().String()},
		},
		Data: map[string]string{"status": "autoscalerStatus: Running\nnodeGroups:\n- name: aks-ceilings-12345678-vmss\n  health: {minSize: 0, maxSize: 3}\n"},
	}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		if err := status.Delete(context.Background(), "cluster-autoscaler-status", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	manifest := rig.Cluster{Namespace: s.namespace, Name: "llm", Groups: []rig.Group{{Name: "gpu", Max: 9}}}.Manifest()
	admit(manifest)
	s.createAs(manifest)

	pool := func(cluster nodepool.Cluster) string {
		for _, p := range cluster.Groups[0].PoolPods {
			if p.Pool != "ceilings" {
				continue
			}
			if p.MayAddNodes == nil || p.MayAddPods == nil {
				return "unknown"
			}
			return fmt.Sprintf("%d nodes, %d pods", *p.MayAddNodes, *p.MayAddPods/p.PerNode)
		}
		return "no such pool"
	}
	m := s.manager(kube.Options{StatusNamespace: s.namespace})
	s.until("the room of the pool", func() bool { return pool(s.read(m, "llm")) == "2 nodes, 2 pods" })
	if finding(s.read(m, "llm"), nodes.CeilingsUnknown) {
		t.Error("something is unknown although all may be read")
	}

	s.allow("ceilings-blind", "ceilings-blind",
		rbacv1.PolicyRule{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get", "list", "watch"}})
	config := rest.CopyConfig(lab.RESTConfig())
	config.Impersonate.UserName = "ceilings-blind"
	blind, _ := s.managerAs(config, kube.Options{StatusNamespace: s.namespace}, nil)
	s.until("the pool without a ceiling", func() bool { return pool(s.read(blind, "llm")) == "unknown" })
	s.until("the finding that ceilings may not be read", func() bool { return finding(s.read(blind, "llm"), nodes.CeilingsUnknown) })
}

// cards makes a node announce GPUs, with the labels of feature discovery, which prove that each is a card.
func (s *scene) cards(name, gpus string) {
	s.Helper()
	nodes := lab.Client().CoreV1().Nodes()
	node, err := nodes.Get(s.Context(), name, metav1.GetOptions{})
	must(s, err)
	for key, value := range map[string]string{"product": "Tesla-T4", "count": gpus, "memory": "15360", "replicas": "1"} {
		metav1.SetMetaDataLabel(&node.ObjectMeta, "nvidia.com/gpu."+key, value)
	}
	if node, err = nodes.Update(s.Context(), node, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
	node.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse(gpus)
	node.Status.Capacity["nvidia.com/gpu"] = resource.MustParse(gpus)
	if _, err := nodes.UpdateStatus(s.Context(), node, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// foreignPod runs a pod of another team on a node. The node has no kubelet, so the test ends it.
func (s *scene) foreignPod(namespace, name, node, gpus string) {
	s.Helper()
	s.podOn(node, namespace, name, corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}, nil)
}

// podOn creates a pod that is bound to a node without the scheduler.
func (s *scene) podOn(node, namespace, name string, limits corev1.ResourceList, affinity *corev1.Affinity) {
	s.Helper()
	pods := lab.Client().CoreV1().Pods(namespace)
	automount := false
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeName: node, Affinity: affinity, AutomountServiceAccountToken: &automount, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "a", Image: rig.Image, Resources: corev1.ResourceRequirements{Limits: limits}}},
	}}
	var err error
	s.until("the pod "+name, func() bool { // its ServiceAccount comes after the namespace
		_, err = pods.Create(s.Context(), pod, metav1.CreateOptions{})
		return err == nil
	})
	s.Cleanup(func() { s.end(namespace, name) })
}

func (s *scene) end(namespace, name string) {
	at := int64(0)
	_ = lab.Client().CoreV1().Pods(namespace).Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &at})
}

// launched returns how many pods a plan launches for 8 waiting tasks that need a GPU each.
func launched(cluster nodepool.Cluster) int64 {
	snapshot := planner.SnapshotOf(cluster)
	snapshot.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 8}}
	return launches(planner.Compute(snapshot, planner.Policy{}))
}

func launches(plan planner.Plan) (n int64) {
	for _, pods := range plan.Launch {
		n += int64(pods)
	}
	return n
}

// launchedFromFiles plans the same with the program, from the objects that the API server prints.
func (s *scene) launchedFromFiles(program, name string) int64 {
	s.Helper()
	core := lab.Client().CoreV1()
	nodes, err := core.Nodes().List(s.Context(), metav1.ListOptions{LabelSelector: "kubernetes.azure.com/agentpool=" + s.namespace})
	must(s, err)
	pods, err := core.Pods("").List(s.Context(), metav1.ListOptions{})
	must(s, err)
	file, err := json.Marshal(map[string]any{
		"rayCluster": s.get(name).Object, "kubeNodes": nodes, "kubePods": pods, "pools": []any{map[string]any{"name": s.namespace, "maxNodes": 1}},
		"pendingRequests": []any{map[string]any{"resources": map[string]any{"GPU": 1}, "count": 8}},
	})
	must(s, err)
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(s.Context(), program, "plan", "--snapshot", "-")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(file), &out, &errOut
	if err := cmd.Run(); err != nil {
		s.Fatalf("%v: %s", err, errOut.String())
	}
	var plan planner.Plan
	must(s, json.Unmarshal(out.Bytes(), &plan))
	return launches(plan)
}

// TestAPodOfAnotherTeamLowersWhatIsLaunched runs a pod of another namespace on the only node with GPUs. The manager of
// `serve` and `plan` with the same objects count it; who may not read pods of all namespaces says so.
func TestAPodOfAnotherTeamLowersWhatIsLaunched(t *testing.T) {
	t.Parallel()
	program, err := rig.Build(t.Context(), t.TempDir())
	must(t, err)
	s := stage(t, "shared")
	stage(t, "shared-others")
	s.addNode("shared-0", "shared")
	s.cards("shared-0", "8")
	manifest := rig.Cluster{Namespace: s.namespace, Name: "llm", Groups: []rig.Group{{Name: "gpu", Max: 9, CPU: "100m", Devices: map[string]int64{"nvidia.com/gpu": 1}}}}.Manifest()
	admit(manifest)
	for _, group := range manifest.Object["spec"].(map[string]any)["workerGroupSpecs"].([]any) {
		pod := group.(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		pod["nodeSelector"] = map[string]any{"kubernetes.azure.com/agentpool": s.namespace}
	}
	s.createAs(manifest)
	one := int64(1)
	options := kube.Options{Pools: poolOf(s.namespace, &one)}
	m := s.manager(options)
	s.until("eight pods on an empty node", func() bool { return launched(s.read(m, "llm")) == 8 })
	s.foreignPod("shared-others", "foreign", "shared-0", "3")
	s.until("five pods beside the other's", func() bool { return launched(s.read(m, "llm")) == 5 })
	if got := s.launchedFromFiles(program, "llm"); got != 5 {
		t.Errorf("plan launches %d pods, serve 5", got)
	}
	if finding(s.read(m, "llm"), nodes.PodsUnknown) {
		t.Error("pods are unknown although all may be read")
	}

	s.allow("shared-blind", "shared-blind",
		rbacv1.PolicyRule{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list", "watch"}})
	s.allowIn("shared-blind", "shared-blind", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}})
	config := rest.CopyConfig(lab.RESTConfig())
	config.Impersonate.UserName = "shared-blind"
	blind, _ := s.managerAs(config, options, nil)
	s.until("the finding that nodes count as empty", func() bool { return finding(s.read(blind, "llm"), nodes.PodsUnknown) })
	if got := launched(s.read(blind, "llm")); got != 8 {
		t.Errorf("%d pods are launched on a node that counts as empty, want 8", got)
	}

	s.end("shared-others", "foreign")
	s.until("eight pods again", func() bool { return launched(s.read(m, "llm")) == 8 })
}

// poolOf configures a pool of at most so many nodes.
func poolOf(name string, most *int64) landing.Config {
	return landing.Config{Pools: []landing.Spec{{Name: name, MaxNodes: most}}}
}

// allowIn binds a role in the scene's namespace to one of the test's own users.
func (s *scene) allowIn(user, name string, rules ...rbacv1.PolicyRule) {
	s.Helper()
	rbac := lab.Client().RbacV1()
	if _, err := rbac.Roles(s.namespace).Create(s.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	_, err := rbac.RoleBindings(s.namespace).Create(s.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	must(s, err)
}
