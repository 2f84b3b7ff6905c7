package decode

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// readNode reads a node as somebody posted it. The excerpts rarely show conditions; without a Ready one it becomes
// ready.
func readNode(t *testing.T, name string) *corev1.Node {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/nodes", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var node corev1.Node
	if err := yaml.Unmarshal(raw, &node); err != nil {
		t.Fatal(err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return &node
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
	return &node
}

func TestRealNodesHoldTheirAllocatableResources(t *testing.T) {
	gpu := func(resource string, amount int64) landing.PodShape {
		return landing.PodShape{Requests: landing.Quantities{resource: raydemand.Whole(amount)}}
	}
	tolerant := gpu("nvidia.com/gpu", 8)
	tolerant.Tolerations = []landing.Toleration{{Key: "nvidia.com/gpu", Operator: "Exists"}}
	tests := []struct {
		name, node string
		shape      landing.PodShape
		want       landing.Answer
	}{
		{"a cordoned node", "ack-p4-cordoned", gpu("nvidia.com/gpu", 1), landing.Answer{Why: "node alihn1-qas-k8s-w31212 is cordoned"}},
		{"a taint that is not tolerated", "eks-karpenter-p4d", gpu("nvidia.com/gpu", 8), landing.Answer{
			Why: "node ip-10-0-5-152.ap-northeast-2.compute.internal has taint nvidia.com/gpu=present:NoSchedule which the group does not tolerate"}},
		{"a taint that is tolerated", "eks-karpenter-p4d", tolerant, landing.Answer{Nodes: 1}},
		{"GKE adds the toleration", "timeslice-gke-l4", gpu("nvidia.com/gpu", 1), landing.Answer{Nodes: 1}},
		{"a MIG profile by its name", "mig-mixed-h100-80-eight-cards", gpu("nvidia.com/mig-1g.10gb", 1), landing.Answer{Nodes: 1}},
		{"a profile that is not cut", "mig-mixed-h100-80-eight-cards", gpu("nvidia.com/mig-7g.80gb", 1), landing.Answer{
			Why: "needs nvidia.com/mig-7g.80gb 1, no node announces it; node myworker.redhat.com announces nvidia.com/mig-1g.10gb 16 instead"}},
		{"capacity that is left over from before partitioning", "mig-mixed-a30-capacity-keeps-old-gpu", gpu("nvidia.com/gpu", 1), landing.Answer{
			Why: "needs nvidia.com/gpu 1, no node announces it; node worker1.host.com announces nvidia.com/mig-1g.6gb 2 instead"}},
		{"GPUs that no plugin announces", "gke-k80-gpu-not-exposed", gpu("nvidia.com/gpu", 1), landing.Answer{
			Why: "needs nvidia.com/gpu 1, no node announces it; node gke-my-gpu-cluster-default-pool-4d0fa82d-ttxh shows GPUs (cloud.google.com/gke-accelerator=nvidia-tesla-k80), and no device plugin announces them"}},
		{"cards that are all unhealthy", "failure-all-cards-unhealthy", gpu("nvidia.com/gpu", 1), landing.Answer{
			Why: "needs nvidia.com/gpu 1, no node announces it"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.shape.Fit([]landing.Node{ForPodFit(sharing.Reader{}, readNode(t, test.node))})); diff != "" {
				t.Errorf("fit (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStrippedNodeSaysTheSameInLess(t *testing.T) {
	whole := readNode(t, "ack-p4-cordoned")
	whole.Status.Images = []corev1.ContainerImage{{Names: []string{"rayproject/ray"}}}
	whole.Annotations, whole.ManagedFields = map[string]string{"a": "b"}, []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	object, err := Strip(whole)
	if err != nil {
		t.Fatal(err)
	}
	stripped, ok := object.(*corev1.Node)
	if !ok {
		t.Fatalf("a node became %T", object)
	}
	if diff := cmp.Diff(ForPodFit(sharing.Reader{}, whole), ForPodFit(sharing.Reader{}, stripped)); diff != "" {
		t.Errorf("node (-whole +stripped):\n%s", diff)
	}
	if len(stripped.Status.Images)+len(stripped.Annotations)+len(stripped.ManagedFields) > 0 || len(stripped.Status.Capacity) != 1 || len(stripped.Status.Conditions) != 2 {
		t.Errorf("too much is kept: %+v", stripped)
	}
}

func TestAHeartbeatChangesNothingThatIsKept(t *testing.T) {
	before := readNode(t, "ack-p4-cordoned")
	after := before.DeepCopy()
	after.ResourceVersion = "2"
	for i := range after.Status.Conditions {
		after.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(time.Unix(1_700_000_000, 0))
	}
	if !ForPodFit(sharing.Reader{}, before).Equal(ForPodFit(sharing.Reader{}, after)) {
		t.Error("a heartbeat makes another node")
	}
}

func TestConfiguredNamesAndPoolLabelsAreReadOnNodes(t *testing.T) {
	reader := sharing.Reader{PoolLabel: "example.com/pool",
		Names: gpuinfo.Names{Configured: []gpuinfo.Resource{{Name: "example.com/vgpu", Kind: gpuinfo.MPS, Role: gpuinfo.Devices}}}}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"example.com/pool": "mine", "agentpool": "theirs"}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"example.com/vgpu": resource.MustParse("1")}},
	}
	if read := ForPodFit(reader, node); read.Pool != "mine" || read.GPUs == nil || read.GPUs.Kind != gpuinfo.MPS {
		t.Errorf("node in pool %q with %+v", read.Pool, read.GPUs)
	}
	if read := ForPodFit(sharing.Reader{}, node); read.Pool != "theirs" {
		t.Errorf("node in pool %q where nothing is configured", read.Pool)
	}
}
