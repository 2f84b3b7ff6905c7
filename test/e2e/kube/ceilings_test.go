package kube

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodes"
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
	if err != nil {
		s.Fatal(err)
	}
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
	if err != nil {
		s.Fatal(err)
	}
	_, err = rbac.ClusterRoleBindings().Create(s.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
