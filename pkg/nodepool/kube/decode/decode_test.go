package decode

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const sample = `
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: llm
  namespace: ml
  uid: u-1
  resourceVersion: "41"
  generation: 3
  annotations:
    heliostat.dev/mode: shadow
    heliostat.dev/freeze: "true"
    heliostat.dev/num-gpus-sync: when-empty
    heliostat.dev/price: '{"gpu": 3.06}'
    heliostat.dev/resource-requests-since: "2026-03-01T12:00:00Z"
    heliostat.dev/resource-requests: '[{"resources":{"GPU":0.5},"count":3,"labelSelectors":[{"zone":"in(a,b)"}]}]'
  ownerReferences:
  - {kind: RayService, name: chat, apiVersion: ray.io/v1, uid: x}
spec:
  enableInTreeAutoscaling: true
  rayVersion: 2.60.0
  upgradeStrategy: {type: None}
  autoscalerOptions: {version: v2, idleTimeoutSeconds: 120, upscalingMode: Conservative}
  headGroupSpec:
    rayStartParams: {port: "6380"}
    template: {spec: {containers: [{name: ray-head, resources: {limits: {cpu: 1, memory: 2Gi}}}]}}
  workerGroupSpecs:
  - groupName: gpu
    replicas: 2
    minReplicas: 1
    maxReplicas: 5
    numOfHosts: 2
    idleTimeoutSeconds: 30
    priority: 7
    labels: {zone: a}
    scaleStrategy: {workersToDelete: [llm-gpu-worker-x], scaleGate: [{name: kueue.k8s.io/quota-exceeded}]}
    rayStartParams: {num-gpus: "1"}
    template: {spec: {containers: [{name: ray-worker, resources: {limits: {cpu: 4, memory: 8Gi, nvidia.com/mig-1g.10gb: 1}}}]}}
status:
  observedGeneration: 2
  head: {serviceName: llm-head-svc, podIP: 10.0.0.9, podName: llm-head}
`

// joined decodes a RayCluster with its pods.
func joined(rayCluster *unstructured.Unstructured, pods []*Pod) nodepool.Cluster {
	return Join(Decode(sharing.Reader{}, rayCluster), pods)
}

func decodeSample(t *testing.T, replace ...string) nodepool.Cluster {
	t.Helper()
	rayCluster, err := ReadManifest([]byte(strings.NewReplacer(replace...).Replace(sample)))
	must(t, err)
	return joined(rayCluster, nil)
}

func TestARayClusterIsReadWhole(t *testing.T) {
	timeout, price, one := 30*time.Second, 3.06, raydemand.One
	want := nodepool.Cluster{
		Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, UID: "u-1",
		ResourceVersion: "41", Generation: 3, ObservedGeneration: 2,
		Mode: nodepool.Shadow, Freeze: true, Owner: nodepool.Owner{Kind: "RayService", Name: "chat", UID: "x"}, OwnedBy: "RayService chat",
		RayVersion: "2.60.0", UpgradeStrategy: "None", InTreeAutoscaling: true, IdleTimeout: 2 * time.Minute, UpscalingMode: "Conservative",
		Head: nodepool.Head{GCSPort: 6380, ServiceFQDN: "llm-head-svc.ml.svc.cluster.local"},
		Groups: []nodepool.WorkerGroup{{
			Name: "gpu", Replicas: 2, Min: 1, Max: 5, NumOfHosts: 2, IdleTimeout: &timeout, Priority: 7, Price: &price,
			Labels: map[string]string{"zone": "a"}, WorkersToDelete: []string{"llm-gpu-worker-x"}, ScaleGates: []string{"kueue.k8s.io/quota-exceeded"},
			Resources: raydemand.Bundle{
				raydemand.CPU: raydemand.Whole(4), raydemand.GPU: raydemand.Whole(1), raydemand.Memory: raydemand.Whole(8 << 30),
			},
			Pod: landing.PodShape{Requests: landing.Quantities{
				"cpu": raydemand.Whole(4), "memory": raydemand.Whole(8 << 30), "nvidia.com/mig-1g.10gb": raydemand.Whole(1),
			}, Limits: landing.Quantities{
				"cpu": raydemand.Whole(4), "memory": raydemand.Whole(8 << 30), "nvidia.com/mig-1g.10gb": raydemand.Whole(1),
			}, Neighbors: landing.Neighbors{Namespace: "ml", Labels: map[string]string{
				"ray.io/cluster": "llm", "ray.io/group": "gpu", "ray.io/node-type": "worker", "ray.io/is-ray-node": "yes", "ray.io/identifier": "llm-worker",
				"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator", "zone": "a",
			}}},
			GPUs: nodepool.GPUSpec{
				Declared: &one, DeclaredBy: "rayStartParams.num-gpus", Derived: &one, DerivedBy: "rayStartParams.num-gpus",
				Limits: landing.Quantities{"nvidia.com/mig-1g.10gb": raydemand.One}, Field: "rayStartParams.num-gpus",
				Counted: []string{"nvidia.com/mig-1g.10gb"},
			},
			NumGPUsSync: nodepool.SyncWhenEmpty,
		}},
		Workers:        []nodepool.Worker{},
		RequestedSince: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		RequestResources: []raydemand.Request{{
			Bundle: raydemand.Bundle{raydemand.GPU: 5000}, Count: 3,
			Selectors: []raydemand.Selector{raydemand.NewSelector(raydemand.Constraint{Key: "zone", Op: raydemand.In, Values: []string{"a", "b"}})},
		}},
	}
	if diff := cmp.Diff(want, decodeSample(t)); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
}

// Each of these would blind a typed client, or stop Ray's autoscaler; here each is a finding and the rest stays
// readable.
func TestWhatCannotBeReadIsAFinding(t *testing.T) {
	tests := []struct {
		name           string
		old, new       string
		code           string
		broken, closed bool
	}{
		{"replicas beyond 32 bits", "replicas: 2\n    min", "replicas: 2147483648\n    min", FieldOutOfRange, true, true},
		{"replicas beyond 64 bits", "replicas: 2\n    min", "replicas: 1e300\n    min", FieldOutOfRange, true, true},
		{"replicas as text", "replicas: 2\n    min", "replicas: two\n    min", FieldUnreadable, true, true},
		{"half a replica", "replicas: 2\n    min", "replicas: 1.5\n    min", FieldUnreadable, true, true},
		{"min above max", "minReplicas: 1", "minReplicas: 6", MinAboveMax, true, false},
		{"a negative max", "maxReplicas: 5", "maxReplicas: -1", MinAboveMax, true, false},
		{"no name", "groupName: gpu", "groupName: ''", GroupUnnamed, true, false},
		{"no hosts", "numOfHosts: 2", "numOfHosts: 0", HostsBelowOne, false, false},
		{"too many hosts", "numOfHosts: 2", "numOfHosts: 200000", FieldOutOfRange, true, false},
		{"a negative idle timeout of a group", "idleTimeoutSeconds: 30", "idleTimeoutSeconds: -7", IdleTimeoutNegative, false, false},
		{"a negative idle timeout of all", "idleTimeoutSeconds: 120", "idleTimeoutSeconds: -7", IdleTimeoutNegative, false, false},
		{"groups that are no list", "workerGroupSpecs:", "workerGroupSpecs: {}\n  other:", FieldUnreadable, false, true},
		{"a group that is no object", "- groupName: gpu", "- 7\n  - groupName: gpu", FieldUnreadable, false, true},
		{"an unknown mode", "mode: shadow", "mode: full", AnnotationUnreadable, false, false},
		{"an unclear freeze", `freeze: "true"`, `freeze: "yes"`, AnnotationUnreadable, false, false},
		{"an unknown annotation", "heliostat.dev/mode", "heliostat.dev/moode", AnnotationUnknown, false, false},
		{"a price of no group", `{"gpu": 3.06}`, `{"gpus": 3.06}`, AnnotationUnreadable, false, false},
		{"a price below nothing", `{"gpu": 3.06}`, `{"gpu": -1}`, AnnotationUnreadable, false, false},
		{"a price in words", `{"gpu": 3.06}`, `{"gpu": "cheap"}`, AnnotationUnreadable, false, false},
		{"a price of null", `{"gpu": 3.06}`, `{"gpu": null}`, AnnotationUnreadable, false, false},
		{"prices that are no object", `{"gpu": 3.06}`, `3.06`, AnnotationUnreadable, false, false},
		{"a moment that is none", "2026-03-01T12:00:00Z", "yesterday", AnnotationUnreadable, false, false},
		{"a request for nothing", `{"GPU":0.5}`, `{}`, AnnotationUnreadable, false, false},
		{"a request without a count", `"count":3`, `"count":0`, AnnotationUnreadable, false, false},
		{"requests that are no list", `'[{"resources`, `'{"x":[{"resources`, AnnotationUnreadable, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cluster := decodeSample(t, test.old, test.new)
			if !slices.Contains(codes(cluster.Findings), test.code) {
				t.Errorf("findings %v, want a %s", cluster.Findings, test.code)
			}
			if cluster.Unreadable != test.closed {
				t.Errorf("Unreadable is %v, want %v", cluster.Unreadable, test.closed)
			}
			broken := len(cluster.Groups) > 0 && cluster.Groups[len(cluster.Groups)-1].Broken
			if broken != test.broken {
				t.Errorf("Broken is %v, want %v", broken, test.broken)
			}
			if cluster.RayVersion != "2.60.0" {
				t.Error("the rest of the cluster was lost")
			}
		})
	}
}

func TestANegativeIdleTimeoutIsNone(t *testing.T) {
	cluster := decodeSample(t, "idleTimeoutSeconds: 120", "idleTimeoutSeconds: -7", "idleTimeoutSeconds: 30", "idleTimeoutSeconds: -1")
	if cluster.IdleTimeout != 0 || *cluster.Groups[0].IdleTimeout != 0 {
		t.Errorf("idle timeouts are %v and %v, want 0, as Ray takes them", cluster.IdleTimeout, *cluster.Groups[0].IdleTimeout)
	}
}

func TestWhatIsUnclearChangesLeast(t *testing.T) {
	if mode := decodeSample(t, "mode: shadow", "mode: full").Mode; mode != nodepool.Shadow {
		t.Errorf("an unknown mode is taken as %q, want shadow", mode)
	}
	if !decodeSample(t, `freeze: "true"`, `freeze: "yes"`).Freeze {
		t.Error("an unclear freeze does not freeze")
	}
	if decodeSample(t, `freeze: "true"`, `freeze: "false"`).Freeze {
		t.Error("freeze: false freezes")
	}
}

func TestOneUnreadableRequestDoesNotCostTheOthers(t *testing.T) {
	requests, problems := decodeRequests(`[{"resources":{"GPU":-1},"count":1},{"resources":{"CPU":2},"count":1},7]`)
	want := []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.Whole(2)}, Count: 1}}
	if diff := cmp.Diff(want, requests); diff != "" || len(problems) != 2 {
		t.Errorf("problems %q, requests (-want +got):\n%s", problems, diff)
	}
}

func TestGroupsOfOneNameAreBothBroken(t *testing.T) {
	cluster := joined(manifestOf(t, `{spec: {workerGroupSpecs: [{groupName: a}, {groupName: b}, {groupName: a}]}}`), nil)
	var broken []bool
	for _, g := range cluster.Groups {
		broken = append(broken, g.Broken)
	}
	if diff := cmp.Diff([]bool{true, false, true}, broken); diff != "" || !slices.Contains(codes(cluster.Findings), GroupDuplicate) {
		t.Errorf("findings %v, broken (-want +got):\n%s", codes(cluster.Findings), diff)
	}
}

func TestAManifestThatIsNoRayClusterIsAnError(t *testing.T) {
	for _, manifest := range []string{"kind: RayJob\nspec: {}", "kind: RayCluster", "{", "[1]", "{metadata: {namespace: 5}, spec: {}}"} {
		if _, err := ReadManifest([]byte(manifest)); err == nil {
			t.Errorf("%q was accepted", manifest)
		}
	}
}

// FuzzDecode: no manifest makes the decoder panic, and a cluster that was read always has sane numbers.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("spec: {workerGroupSpecs: [7, {replicas: 1e400}, {template: {spec: {containers: [[]]}}}], headGroupSpec: []}"))
	f.Add([]byte(`{"spec":{"workerGroupSpecs":[{"groupName":"g","rayStartParams":{"resources":"null"},"template":{"spec":{"containers":[{"resources":{"limits":{"google.com/tpu":"4"}}}]}}}]}}`))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		rayCluster, err := ReadManifest(manifest)
		if err != nil {
			return
		}
		HeadGroup(sharing.Reader{}, rayCluster)
		cluster := joined(rayCluster, nil)
		for i, g := range cluster.Groups {
			if g.Index != i || g.NumOfHosts < 1 || !g.Broken && (g.Min < 0 || g.Min > g.Max) {
				t.Errorf("group %+v", g)
			}
		}
	})
}

// moment is a time of a test; Kubernetes keeps whole seconds.
func moment(second int) metav1.Time { return metav1.Unix(int64(1_700_000_000+second), 0) }

func pod(name, kind, group string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ml", UID: "uid-1", CreationTimestamp: moment(0),
			Labels: map[string]string{ClusterLabel: "llm", nodeTypeLabel: kind, groupLabel: group},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray"}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// kept returns what Heliostat keeps of pods.
func kept(pods ...*corev1.Pod) (list []*Pod) {
	for _, p := range pods {
		list = append(list, PodOf(p))
	}
	return list
}

func rayState(state corev1.ContainerState, restarts int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: "ray", State: state, RestartCount: restarts})
	}
}

func neverRestarts(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }

func TestWorkersShowTheirStage(t *testing.T) {
	deleted := moment(9)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: moment(5)}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	tests := []struct {
		name string
		pod  *corev1.Pod
		want nodepool.Worker
	}{
		{"unschedulable", pod("w", workerNode, "gpu", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes"}}
		}), nodepool.Worker{Unschedulable: "0/3 nodes"}},
		{"behind a scheduling gate", pod("w", workerNode, "gpu", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
		}), nodepool.Worker{Gated: true}},
		{"running and ready", pod("w", workerNode, "gpu", rayState(running, 0), func(p *corev1.Pod) {
			p.Status.PodIP = "10.1.1.1"
			p.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: moment(2)},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: moment(7)},
			}
		}), nodepool.Worker{Running: true, Ready: true, IP: "10.1.1.1", ScheduledAt: moment(2).Time, StartedAt: moment(5).Time}},
		{"without its image", pod("w", workerNode, "gpu", rayState(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off"}}, 0)),
			nodepool.Worker{Waits: "ImagePullBackOff"}},
		{"failed", pod("w", workerNode, "gpu", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), nodepool.Worker{Failed: true}},
		{"ended in a pod that never restarts", pod("w", workerNode, "gpu", rayState(ended, 0), neverRestarts), nodepool.Worker{Failed: true}},
		{"ended in a pod that restarts", pod("w", workerNode, "gpu", rayState(ended, 0)), nodepool.Worker{}},
		{"terminating", pod("w", workerNode, "gpu", rayState(running, 0), func(p *corev1.Pod) { p.DeletionTimestamp = &deleted }),
			nodepool.Worker{Terminating: true, Running: true, StartedAt: moment(5).Time,
				Going: departure.Of(departure.PodTerminating, "the pod is being deleted").Until(deleted.UTC())}},
		{"being evicted", pod("w", workerNode, "gpu", rayState(running, 0), func(p *corev1.Pod) {
			p.Spec.TerminationGracePeriodSeconds, p.DeletionTimestamp = new(int64(120)), &deleted
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", LastTransitionTime: moment(4)}}
		}), nodepool.Worker{Terminating: true, Running: true, StartedAt: moment(5).Time, Grace: 2 * time.Minute, Going: &departure.Notice{
			Sign: departure.PodDisrupted, Message: "the pod is being evicted (EvictionByEvictionAPI)", Certain: true, Since: moment(4).UTC(), Deadline: deleted.UTC()}}},
		{"one of several hosts", pod("w", workerNode, "gpu", func(p *corev1.Pod) { p.Labels[replicaLabel] = "gpu-ab" }), nodepool.Worker{Replica: "gpu-ab"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.want.Pod, test.want.UID, test.want.Group, test.want.CreatedAt = "w", "uid-1", "gpu", moment(0).Time
			if test.want.Grace == 0 {
				test.want.Grace = 30 * time.Second // the default of Kubernetes
			}
			if diff := cmp.Diff([]nodepool.Worker{test.want}, workers(kept(test.pod))); diff != "" {
				t.Errorf("worker (-want +got):\n%s", diff)
			}
		})
	}
}

// The conditions are those that the gang schedulers write: scheduler-plugins v0.34.7 (seen), Volcano
// (TestTaskSchedulingReason), kube-scheduler 1.35 and 1.36, KAI (recordUnschedulablePodsEvents).
func TestAGangSchedulerHoldsAPodThatFits(t *testing.T) {
	for _, c := range []struct {
		reason, message string
		held            bool
	}{
		{"Unschedulable", "0/2 nodes are available: pre-filter pod w cannot find enough sibling pods, current pods number: 2, minMember of group: 3.", true},
		{"Unschedulable", "0/2 nodes are available: podGroup ml/llm failed recently.", true},
		{"Unschedulable", "0/2 nodes are available: resource gap: map[nvidia.com/gpu:{{2 0} {<nil>} 2 DecimalSI}].", true},
		{"Unschedulable", "0/1 nodes are available: 1 optimistic rejection in PostFilter.", true},
		{"Unschedulable", "0/1 nodes are available: 1 rejection in Unreserve.", true},
		{"Unschedulable", "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Coscheduling.", true},
		{"Unschedulable", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. PodGroup ml/llm gets rejected due to Pod w is unschedulable even after PostFilter", false},
		{"Schedulable", "Pod ml/w can possibly be assigned to n1", true},
		{"Undetermined", "3/4 tasks in gang unschedulable: pod group is not ready", true},
		{"Unschedulable", "pod group is not ready, 6 Pending, 6 minAvailable; Pending: 1 Unschedulable, 5 Schedulable", true},
		{"Unschedulable", "all nodes are unavailable: 1 node(s) pod number exceeded, 2 node(s) resource fit failed.", false},
		{"Unschedulable", "0/1 nodes are available: 1 rejected due to timeout after waiting 5m0s at plugin GangScheduling.", true},
		{"Unschedulable", "waiting for minCount pods from a gang to appear in scheduling queue", true},
		{"Unschedulable", "pod group is unschedulable", true},
		{"Unschedulable", "Unable to schedule pod", true},
		{"Unschedulable", "no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPUs.", false},
		{"SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates", false},
	} {
		w := worker(pod("w", workerNode, "gpu", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: c.reason, Message: c.message}}
		}))
		if (w.GangHeld != "") != c.held || c.held && (w.GangHeld != ": "+c.message || w.Unschedulable != "" || w.Gated) {
			t.Errorf("%s %q: held %q, unschedulable %q, gated %v", c.reason, c.message, w.GangHeld, w.Unschedulable, w.Gated)
		}
	}
}

func TestAPodOfAWorkloadIsHeldUntilTheSchedulerTriesIt(t *testing.T) {
	ofWorkload := func(p *corev1.Pod) { p.Spec.WorkloadRef = &corev1.WorkloadReference{Name: "gang"} }
	if w := worker(pod("w", workerNode, "gpu", ofWorkload)); !strings.Contains(w.GangHeld, "Workload gang") {
		t.Errorf("held %q", w.GangHeld)
	}
	runs := func(p *corev1.Pod) { p.Spec.NodeName = "n" }
	if w := worker(pod("w", workerNode, "gpu", ofWorkload, runs)); w.GangHeld != "" {
		t.Errorf("held %q", w.GangHeld)
	}
}

func TestPodsThatBelongNowhereAreFindings(t *testing.T) {
	d := DecodeObject(manifestOf(t, `{spec: {workerGroupSpecs: [{groupName: gpu, numOfHosts: 2, scaleStrategy: {workersToDelete: ["", head]}}]}}`))
	cluster := Join(d, kept(pod("head", headNode, "headgroup"), pod("a", workerNode, "old"), pod("b", workerNode, "gpu")))
	for _, code := range []string{GroupRemoved, ReplicaUnnamed, DeleteListForeign} {
		if !slices.Contains(codes(cluster.Findings), code) {
			t.Errorf("findings %v lack %s", codes(cluster.Findings), code)
		}
	}
	if len(cluster.Workers) != 2 {
		t.Errorf("workers %v, want both", cluster.Workers)
	}
}

// An admission webhook or a newer Kubernetes may complete what a template lacks, so a pod that runs proves more than a rule.
func TestAPodThatRunsDisprovesThatItsGroupIsRefused(t *testing.T) {
	d := DecodeObject(manifestOf(t, `{spec: {workerGroupSpecs: [
		{groupName: gpu, maxReplicas: 2, template: {spec: {restartPolicy: always, containers: [{name: ray, image: i}]}}}]}}`))
	runs := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "ray", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	for _, c := range []struct {
		pods     []*Pod
		broken   bool
		severity raydemand.Severity
	}{
		{nil, true, raydemand.Error},
		{kept(pod("w", workerNode, "gpu")), true, raydemand.Error},
		{kept(pod("w", workerNode, "gpu", runs)), false, raydemand.Warning},
		{kept(pod("w", workerNode, "other", runs)), true, raydemand.Error},
	} {
		cluster := Join(d, c.pods)
		at := slices.IndexFunc(cluster.Findings, func(f raydemand.Finding) bool { return f.Code == PodsRefused })
		if at < 0 || cluster.Groups[0].Broken != c.broken || cluster.Findings[at].Severity != c.severity {
			t.Errorf("%d pods: broken %v, findings %+v", len(c.pods), cluster.Groups[0].Broken, cluster.Findings)
		}
	}
}

// The operator stops at the first group whose pods are refused (docs/reference/facts.md#group-order).
func TestAGroupThatBlocksLaterOnesIsAFinding(t *testing.T) {
	d := DecodeObject(manifestOf(t, `
spec: {workerGroupSpecs: [{groupName: good, replicas: 1}, {groupName: bad, replicas: 1}, {groupName: late, replicas: 1}]}
status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreateWorkerPod, message: forbidden}]}`))
	cluster := Join(d, kept(pod("w", workerNode, "good")))
	for _, f := range cluster.Findings {
		if f.Code == WorkerPodsFail {
			if f.Seen != "FailedCreateWorkerPod: forbidden" {
				t.Errorf("finding %+v lacks what the operator says", f)
			}
			return
		}
	}
	t.Errorf("findings %v lack %s", codes(cluster.Findings), WorkerPodsFail)
}

func TestAnAnnotationOfOneWordIsReadOrReported(t *testing.T) {
	for _, test := range []struct {
		key, text, want string
		reported        int
	}{
		{nodepool.IsolationAnnotation, "limit", string(nodepool.RequireLimit), 0},
		{nodepool.IsolationAnnotation, "any", string(nodepool.AnyIsolation), 0},
		{nodepool.IsolationAnnotation, "strong", string(nodepool.RequireHardware), 1},
		{nodepool.ConsolidateAnnotation, "none", string(nodepool.ConsolidateNone), 0},
		{nodepool.ConsolidateAnnotation, "serve", string(nodepool.ConsolidateServe), 0},
		{nodepool.ConsolidateAnnotation, "restartable", string(nodepool.ConsolidateRestartable), 0},
		{nodepool.ConsolidateAnnotation, "Serve", string(nodepool.ConsolidateNone), 1},
		{nodepool.ConsolidateAnnotation, "true", string(nodepool.ConsolidateNone), 1},
		{nodepool.ConsolidateAnnotation, "", string(nodepool.ConsolidateNone), 1},
	} {
		report, cluster := &Report{}, nodepool.Cluster{}
		readAnnotations(FieldsOf(map[string]any{"annotations": map[string]any{test.key: test.text}}, report), &cluster)
		got := string(cluster.Isolation) + string(cluster.Consolidate) // the other one is empty
		if got != test.want || len(report.All) != test.reported {
			t.Errorf("%s %q: %s with findings %v", test.key, test.text, got, report.All)
		}
	}
}

func TestOnlyAReadableOptInAllowsToTakeGPUs(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	text := giveback.TakingsText([]giveback.Taking{{At: at, GPUs: 8}, {At: at.Add(time.Minute), GPUs: 2}})
	for _, test := range []struct {
		reclaimable, reclaimed string
		want                   bool
		takings, reported      int
	}{
		{"true", "", true, 0, 0},
		{"false", "", false, 0, 0},
		{"yes", "", false, 0, 1},
		{"true", text, true, 2, 0},
		{"true", "2026-03-01T12:00:00Z", false, 0, 1},
		{"true", "2026-03-01T12:00:00Z -1", false, 0, 1},
		{"true", "some", false, 0, 1},
	} {
		report, cluster := &Report{}, nodepool.Cluster{}
		annotations := map[string]any{giveback.ReclaimableAnnotation: test.reclaimable}
		if test.reclaimed != "" {
			annotations[giveback.ReclaimedAnnotation] = test.reclaimed
		}
		readAnnotations(FieldsOf(map[string]any{"annotations": annotations}, report), &cluster)
		if cluster.Reclaimable != test.want || len(cluster.Reclaimed) != test.takings || len(report.All) != test.reported {
			t.Errorf("%+v: %t, %v, findings %v", test, cluster.Reclaimable, cluster.Reclaimed, report.All)
		}
		if taken := giveback.Taken(cluster.Reclaimed, at.Add(time.Hour)); test.takings > 0 && taken != 2 {
			t.Errorf("%d GPUs count an hour later, want 2", taken)
		}
	}
}

// What is handed out may be changed by its reader; the kept form must not.
func TestJoinHandsOutCopies(t *testing.T) {
	d := DecodeObject(manifestOf(t, sample))
	Join(d, nil).Groups[0].Resources["GPU"] = 0
	if d.Cluster.Groups[0].Resources["GPU"] != raydemand.One {
		t.Error("a reader changed the kept form")
	}
	cluster := Join(d, nil)
	cluster.Groups[0].Replicas = 99
	if d.Cluster.Groups[0].Replicas == 99 {
		t.Error("a reader changed the kept groups")
	}
}

// The cache keeps the spec of a RayCluster as JSON.
func TestARayClusterOfTheCacheSaysTheSame(t *testing.T) {
	eachFixture(t, func(t *testing.T, f fixture) {
		whole := &unstructured.Unstructured{Object: f.Cluster}
		want := Join(DecodeObject(whole), nil)
		object, err := StripRayCluster(whole.DeepCopy())
		must(t, err)
		kept := object.(*unstructured.Unstructured)
		if _, maps := kept.Object["spec"].(map[string]any); maps {
			t.Error("the spec is kept as maps")
		}
		if diff := cmp.Diff(want, Join(DecodeObject(Whole(kept)), nil)); diff != "" {
			t.Errorf("of the cache (-whole +kept):\n%s", diff)
		}
	})
	odd := &unstructured.Unstructured{Object: map[string]any{"spec": "no object"}}
	if Whole(odd) != odd {
		t.Error("a spec that is a text is read")
	}
}

// manifestOf reads an object from YAML.
func manifestOf(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: objectOf(t, manifest)}
}

func objectOf(t *testing.T, manifest string) map[string]any {
	t.Helper()
	object := map[string]any{}
	must(t, yaml.Unmarshal([]byte(manifest), &object))
	return object
}

func TestARayClusterSaysWhenItWasCreated(t *testing.T) {
	object := manifestOf(t, `{metadata: {name: llm, namespace: ml, creationTimestamp: "2026-03-01T12:00:00Z"}, spec: {}}`)
	want := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if got := Decode(sharing.Reader{}, object).Cluster.CreatedAt; !got.Equal(want) {
		t.Errorf("created at %s, want %s", got, want)
	}
}

func TestASuspendedRayClusterIsHeliostatsOwnUntilItsSpecChanges(t *testing.T) {
	for text, want := range map[string]bool{
		"2026-03-01T10:00:00Z 4": true, "2026-03-01T10:00:00Z 3": false, "2026-03-01T10:00:00Z": false, "soon 4": false,
	} {
		cluster := DecodeObject(manifestOf(t, `{metadata: {generation: 4, annotations: {`+nodepool.IdleSinceAnnotation+`: "`+text+`"}}, spec: {suspend: true}}`)).Cluster
		if own := !cluster.IdleSince.IsZero(); own != want {
			t.Errorf("%q at generation 4: Heliostat has suspended it: %t, want %t", text, own, want)
		}
	}
}

// A value in quotes reads like one without, so the finding shows the quotes, and says what to do about them.
func TestAFindingShowsTheQuotesThatAreWrong(t *testing.T) {
	for name, c := range map[string]struct {
		field       string
		value       any
		seen, fixed string
	}{
		"a number in quotes":     {"maxReplicas", "3", `"3"`, "remove the quotes"},
		"a flag in quotes":       {"suspend", "false", `"false"`, "remove the quotes"},
		"a word for a number":    {"maxReplicas", "three", `"three"`, "make it a whole number"},
		"a number for a name":    {"groupName", int64(7), "7", `put it in quotes: "7"`},
		"a variable":             {"maxReplicas", "${GPUS}", `"${GPUS}"`, "give ${GPUS} its value before you create the object, as envsubst does"},
		"an object for a number": {"maxReplicas", map[string]any{}, "{}", "make it a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			var report Report
			fields := FieldsOf(map[string]any{c.field: c.value}, &report)
			switch c.field {
			case "suspend":
				fields.Flag(c.field)
			case "groupName":
				fields.Text(c.field)
			default:
				fields.Int32(c.field, 0)
			}
			found := report.All
			if len(found) != 1 || found[0].Seen != c.seen || found[0].Fix != c.fixed {
				t.Errorf("got %+v", found)
			}
		})
	}
}

// Faults of one RayCluster are reported within bounds: a finding for each of ten thousand entries, each with
// the whole annotation in it, made an answer of 200 MB.
func TestManyFaultsAreReportedBriefly(t *testing.T) {
	requests := "[" + strings.Repeat("7,", 9999) + "7]"
	var unknown strings.Builder
	for i := range 500 {
		fmt.Fprintf(&unknown, "    heliostat.dev/moode-%d: %s\n", i, strings.Repeat("é", 200))
	}
	cluster := decodeSample(t,
		`[{"resources":{"GPU":0.5},"count":3,"labelSelectors":[{"zone":"in(a,b)"}]}]`, requests,
		"    heliostat.dev/mode: shadow\n", "    heliostat.dev/mode: shadow\n"+unknown.String())
	reported, size := map[string]int{}, 0
	for _, f := range cluster.Findings {
		reported[f.Code]++
		size += len(f.Seen) + len(f.Why) + len(f.Fix) + len(f.Field)
	}
	if reported[AnnotationUnreadable] != MostOfOneCode || reported[AnnotationUnknown] != MostOfOneCode {
		t.Errorf("findings by code: %v, want %d of each", reported, MostOfOneCode)
	}
	if size > 20<<10 {
		t.Errorf("the findings are %d bytes long", size)
	}
	text := fmt.Sprint(cluster.Findings)
	for _, want := range []string{"9980 more of this kind are not listed", "480 more of this kind are not listed", "(20001 bytes)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not reported", want)
		}
	}
}

func TestAPolicyThatCannotBeReadWantsNothingAndIsAFinding(t *testing.T) {
	d := DecodeObject(manifestOf(t, `
metadata: {generation: 1, annotations: {`+capacity.Annotation+`: '{"keepWarm": [{"group": "gpu", "count": "two"}]}'}}
spec: {}
status: {observedGeneration: 1}`))
	p := d.Cluster.Policy
	if p == nil || !cmp.Equal(p.Policy, capacity.Policy{}) || p.Fault == "" {
		t.Errorf("policy %+v, want one that counts and wants nothing", p)
	}
	if len(d.Findings) != 1 {
		t.Fatalf("findings %+v, want one", d.Findings)
	}
	f := d.Findings[0]
	if f.Code != AnnotationUnreadable || !strings.HasSuffix(f.Field, "capacity-policy: keepWarm[0].count") ||
		f.Seen != `"two"` || !strings.Contains(f.Fix, "a whole number from 0 to 10000") {
		t.Errorf("finding %+v", f)
	}
}

func TestRequestsInTheAnnotationMayRequireSlices(t *testing.T) {
	requests, problems := decodeRequests(`[
		{"resources": {"CPU": 2}, "slice": {"memory": "10Gi", "isolation": "hardware"}, "count": 3},
		{"resources": {"GPU": 1}, "slice": {"memory": "10GB"}, "count": 1},
		{"resources": {"GPU": 1}, "slice": {}, "count": 1},
		{"resources": {"GPU": 1}, "count": 1}]`)
	want := []raydemand.Request{
		{Bundle: raydemand.Bundle{"CPU": raydemand.Whole(2), "GPU": raydemand.One}, Count: 3, Slice: &raydemand.SliceRequirement{Memory: 10 << 30, Isolation: "hardware"}},
		{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 1},
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(problems) != 2 || !strings.Contains(problems[0], `entry 1 is ignored: slice.memory: "10GB": want `) || !strings.Contains(problems[1], "entry 2 is ignored: slice: {}: want ") {
		t.Errorf("problems: %q", problems)
	}
	annotations, err := EncodeRequests(want, time.Time{})
	must(t, err)
	again, problems := decodeRequests(annotations[ResourceRequestsAnnotation].(string))
	if diff := cmp.Diff(want, again); diff != "" || len(problems) > 0 {
		t.Errorf("what was written is read again as another: %s (%v)", diff, problems)
	}
}

func TestRequestsAreKeptInTwoAnnotations(t *testing.T) {
	since := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("CET", 3600))
	got, err := EncodeRequests([]raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: 5000}, Count: 2}}, since)
	want := map[string]any{
		ResourceRequestsAnnotation: `[{"resources":{"GPU":0.5},"count":2}]`, RequestedSinceAnnotation: "2026-03-01T12:00:00Z",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("%v; annotations (-want +got):\n%s", err, diff)
	}
	if requests, problems := decodeRequests(got[ResourceRequestsAnnotation].(string)); len(requests) != 1 || len(problems) > 0 {
		t.Errorf("read back as %v, %v", requests, problems)
	}
	got, err = EncodeRequests(nil, since)
	if diff := cmp.Diff(map[string]any{ResourceRequestsAnnotation: nil, RequestedSinceAnnotation: nil}, got); diff != "" || err != nil {
		t.Errorf("%v; clearing (-want +got):\n%s", err, diff)
	}
}

func TestRequestsThatDoNotFitNameTheLimit(t *testing.T) {
	large := []raydemand.Request{{Bundle: raydemand.Bundle{strings.Repeat("x", MaxRequestsBytes): raydemand.One}, Count: 1}}
	if _, err := EncodeRequests(large, time.Time{}); !errors.Is(err, nodepool.ErrTooLarge) || !strings.Contains(err.Error(), "65536") {
		t.Errorf("error is %v, want ErrTooLarge with the limit", err)
	}
}
