package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

// beatingPod is a pod that needs one of a resource. It writes the file name.beat ten times a second, and the file
// name.term when it gets SIGTERM, half a second before it ends.
func beatingPod(name, resource, dir string) *corev1.Pod {
	pod := sleepingPod(name)
	beat, term := filepath.Join(dir, name+".beat"), filepath.Join(dir, name+".term")
	pod.Spec.Containers[0].Command[2] = fmt.Sprintf(
		`trap 'touch %s; sleep 0.5; exit' TERM; while :; do touch %s; sleep 0.1; done`, term, beat)
	pod.Spec.Containers[0].Resources.Limits = resources(map[string]string{resource: "1"})
	return pod
}

// beats returns an error unless the pod's process lives.
func beats(dir, name string) error {
	info, err := os.Stat(filepath.Join(dir, name+".beat"))
	if err != nil {
		return err
	}
	if age := time.Since(info.ModTime()); age > 2*time.Second {
		return fmt.Errorf("%s wrote its file %v ago", name, age)
	}
	return nil
}

// nodeOf returns the node of a pod.
func nodeOf(t *testing.T, c *Cluster, name string) *corev1.Node {
	t.Helper()
	pod, err := c.Client().CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node, err := c.Client().CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// TestKarpentersNodesRunProcesses covers what a machine does: it is launched for a pod, at the cheapest offer, it is
// Ready after its delays, its pods end with their grace period when Karpenter drains it, and it takes all processes
// with it when it dies.
func TestKarpentersNodesRunProcesses(t *testing.T) {
	c := startCluster(t, Options{Nodes: []nodeagent.NodeSpec{}, Ray: []string{}, Images: machineImage, NoOperator: true,
		AdoptNodes: true, InstanceTypes: []InstanceType{
			{Name: "gpu", Resources: map[string]string{"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"},
				Offers: []Offer{{Price: 3}, {CapacityType: "spot", Price: 2}, {CapacityType: "spot", Zone: "zone-b", Price: 1}}},
			{Name: "mig", Resources: map[string]string{"cpu": "8", "memory": "32Gi", "nvidia.com/mig-1g.10gb": "7"}, Price: 1},
		}})
	dir := t.TempDir()
	if err := errors.Join(c.AddNodeClass(t.Context(), "slow", "3s"), c.AddNodeClass(t.Context(), "fast", "0s"),
		c.AddNodePool(t.Context(), NodePool{Name: "gpu", Class: "slow", Types: []string{"gpu"},
			CapacityTypes: []string{"spot", "on-demand"}, Taints: []corev1.Taint{{Key: "nvidia.com/gpu", Effect: "NoSchedule"}}}),
		c.AddNodePool(t.Context(), NodePool{Name: "mig", Class: "fast", Types: []string{"mig"},
			Annotations: map[string]string{nodeagent.ReadyAfterAnnotation: "6s"}}),
	); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	gpu := beatingPod("gpu", "nvidia.com/gpu", dir)
	gpu.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: "Exists"}}
	for _, pod := range []*corev1.Pod{gpu, beatingPod("mig", "nvidia.com/mig-1g.10gb", dir)} {
		if _, err := c.Client().CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		within(t, func(ctx context.Context) error { return errors.Join(podRuns(ctx, c, pod.Name), beats(dir, pod.Name)) })
	}
	if took := time.Since(asked); took < 3*time.Second {
		t.Errorf("the node was there after %v, want its registration delay of 3 s", took)
	}
	isTheCheapestOffer(t, nodeOf(t, c, "gpu"))
	wasReadyLate(t, nodeOf(t, c, "mig"), 5*time.Second)
	drains(t, c, dir)
	dies(t, c, dir)
}

func isTheCheapestOffer(t *testing.T, node *corev1.Node) {
	t.Helper()
	for key, want := range map[string]string{capacityTypeLabel: "spot", zoneLabel: "zone-b", instanceTypeLabel: "gpu",
		"karpenter.sh/nodepool": "gpu"} {
		if node.Labels[key] != want {
			t.Errorf("label %s of node %s is %q, want %q", key, node.Name, node.Labels[key], want)
		}
	}
	if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "nvidia.com/gpu" {
		t.Errorf("taints of node %s: %v, want that of the NodePool", node.Name, node.Spec.Taints)
	}
	gpus, cpus := node.Status.Capacity["nvidia.com/gpu"], node.Status.Capacity["cpu"]
	if gpus.String() != "1" || cpus.String() != "7900m" {
		t.Errorf("node %s has %s GPUs and %s CPUs, want 1 and 7900m", node.Name, &gpus, &cpus)
	}
}

func wasReadyLate(t *testing.T, node *corev1.Node, delay time.Duration) {
	t.Helper()
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		took := condition.LastTransitionTime.Sub(node.CreationTimestamp.Time)
		if condition.Status != corev1.ConditionTrue || took < delay {
			t.Errorf("node %s is Ready=%s %v after its creation, want at least %v", node.Name, condition.Status, took, delay)
		}
	}
}

// drains deletes a NodeClaim: its pod gets SIGTERM and time to end, and then the node is gone.
func drains(t *testing.T, c *Cluster, dir string) {
	t.Helper()
	node := nodeOf(t, c, "gpu")
	claim := node.Labels["kubernetes.io/hostname"] // the provider's name for the NodeClaim
	if err := c.Dynamic().Resource(NodeClaims).Delete(t.Context(), claim, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, func(ctx context.Context) error {
		if _, err := c.Client().CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("node %s is there: %w", node.Name, err)
		}
		return nil
	})
	if !exists(filepath.Join(dir, "gpu.term")) {
		t.Error("the pod got no SIGTERM before its node was gone")
	}
	if _, err := c.Client().CoreV1().Pods("default").Get(t.Context(), "gpu", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the drained pod is there: %v", err)
	}
	within(t, func(context.Context) error {
		if c.Agent().Runs(node.Name) {
			return fmt.Errorf("the machine of node %s is on", node.Name)
		}
		return nil
	})
}

// dies deletes a Node object without a drain: the process is killed at once, and the pod's object stays.
func dies(t *testing.T, c *Cluster, dir string) {
	t.Helper()
	node := nodeOf(t, c, "mig")
	noFinalizers := []byte(`{"metadata": {"finalizers": null}}`)
	nodes := c.Client().CoreV1().Nodes()
	if _, err := nodes.Patch(t.Context(), node.Name, types.MergePatchType, noFinalizers, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := nodes.Delete(t.Context(), node.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, func(ctx context.Context) error {
		if err := beats(dir, "mig"); err == nil || !strings.Contains(err.Error(), "ago") {
			return fmt.Errorf("the process lives without its node: %w", err)
		}
		return nil
	})
	if exists(filepath.Join(dir, "mig.term")) {
		t.Error("a dead machine sent SIGTERM")
	}
	if err := podRuns(t.Context(), c, "mig"); err != nil {
		t.Errorf("the pod's object: %v, want Running until Kubernetes notices", err)
	}
}
