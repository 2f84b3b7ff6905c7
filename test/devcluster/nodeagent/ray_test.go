package nodeagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/test/devcluster"
)

var rayClusters = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}

// aRayCluster has one worker with a whole GPU and one with a MIG slice.
const aRayCluster = `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: real, namespace: default}
spec:
  rayVersion: 2.60.0
  headGroupSpec:
    rayStartParams: {num-cpus: "0"}
    template: {spec: {containers: [{name: ray-head, image: "rayproject/ray:2.60.0", resources: {limits: {cpu: "1", memory: 2Gi}}}]}}
  workerGroupSpecs:
  - {groupName: gpu, replicas: 1, minReplicas: 0, maxReplicas: 4, rayStartParams: {},
     template: {spec: {containers: [{name: w, image: "rayproject/ray:2.60.0", resources: {limits: {cpu: "1", memory: 1Gi, nvidia.com/gpu: "1"}}}]}}}
  - {groupName: mig, replicas: 1, minReplicas: 0, maxReplicas: 7, rayStartParams: {},
     template: {spec: {containers: [{name: w, image: "rayproject/ray:2.60.0", resources: {limits: {cpu: "1", memory: 1Gi, nvidia.com/mig-1g.10gb: "1"}}}]}}}
`

// driver asks for two GPUs, one after the other's node, and says what ran where.
const driver = `
import json, os, sys, time, ray
ray.init(address=sys.argv[1], logging_level="ERROR", log_to_driver=False)
deadline = time.time() + 120
while sum(n["Alive"] for n in ray.nodes()) < 3 and time.time() < deadline:
    time.sleep(0.1)
@ray.remote(num_gpus=1)
def where():
    time.sleep(0.5)
    return [os.environ["RAY_CLOUD_INSTANCE_ID"], os.environ["RAY_NODE_TYPE_NAME"], ray.util.get_node_ip_address()]
print(json.dumps(sorted(ray.get([where.remote(), where.remote()]))))
`

func TestARayClusterRunsGPUTasks(t *testing.T) {
	w := newWorld(t)
	begin := time.Now()
	w.createRayCluster()
	pods := w.rayPods(3)
	byNode := map[string]string{}
	for _, pod := range pods {
		byNode[pod.Labels["ray.io/group"]] = pod.Spec.NodeName
	}
	if byNode["gpu"] != "gpu-0" || byNode["mig"] != "mig-0" {
		t.Errorf("groups run on %v", byNode)
	}
	head := pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Labels["ray.io/node-type"] == "head" })]

	python := filepath.Join(w.cluster.RayEnv(devcluster.DefaultRay), "bin", "python")
	w.untilGCS(&head)
	output, err := exec.CommandContext(t.Context(), python, "-c", driver, head.Status.PodIP+":6379").Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		t.Fatalf("driver: %v\n%s", err, failed.Stderr)
	}
	if err != nil {
		t.Fatalf("driver: %v", err)
	}
	t.Logf("two GPU tasks had run %.1f s after the RayCluster was created", time.Since(begin).Seconds())
	var got, want [][]string
	if err := json.Unmarshal(output, &got); err != nil {
		t.Fatalf("driver said %q: %v", output, err)
	}
	for _, pod := range pods {
		if pod.Name != head.Name {
			want = append(want, []string{pod.Name, pod.Labels["ray.io/group"], pod.Status.PodIP})
		}
	}
	slices.SortFunc(want, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pod, group and address of the tasks (-want +got):\n%s", diff)
	}
	for _, pod := range pods {
		ready := w.until(&pod, "ready", func(p *corev1.Pod) bool {
			return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Ready
		})
		t.Logf("%s: %d MiB PSS", ready.Name, w.pss(ready)>>20)
	}
}

// untilGCS waits for the head to be ready: a driver does not wait long for a GCS.
func (w *world) untilGCS(head *corev1.Pod) {
	w.Helper()
	w.until(head, "ready", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Ready
	})
}

func (w *world) createRayCluster() {
	w.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(aRayCluster), &object.Object); err != nil {
		w.Fatal(err)
	}
	clusters := w.cluster.Dynamic().Resource(rayClusters).Namespace("default")
	if _, err := clusters.Create(w.Context(), &object, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx := context.Background()
		if err := clusters.Delete(ctx, "real", metav1.DeleteOptions{}); err != nil {
			w.Error(err)
		}
		begin := time.Now()
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
			pods, err := w.listRayPods(ctx)
			return err == nil && len(pods) == 0, nil
		})
		if err != nil {
			w.Errorf("pods are left after the RayCluster was deleted: %v", err)
		}
		w.Logf("all pods were gone %.1f s after the RayCluster was deleted", time.Since(begin).Seconds())
	})
}

func (w *world) listRayPods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := w.cluster.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "ray.io/cluster=real"})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// rayPods waits for so many pods of the cluster to have an address.
func (w *world) rayPods(count int) []corev1.Pod {
	w.Helper()
	var pods []corev1.Pod
	err := wait.PollUntilContextTimeout(w.Context(), 50*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		pods, err = w.listRayPods(ctx)
		unaddressed := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Status.PodIP == "" })
		return err == nil && len(pods) == count && !unaddressed, nil
	})
	if err != nil {
		w.Fatalf("%d pods, want %d with an address: %v", len(pods), count, err)
	}
	return pods
}

// pss adds up the memory of all processes that share the PID namespace of the pod's `ray start`; 0 where there is none.
func (w *world) pss(pod *corev1.Pod) int64 {
	w.Helper()
	output, err := w.exec(pod, "bash", "-c", "cat /proc/[0-9]*/smaps_rollup 2>/dev/null | grep ^Pss:")
	if err != nil {
		w.Logf("reading memory: %v", err)
		return 0
	}
	sum := int64(0)
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			w.Fatal(err)
		}
		sum += kib << 10
	}
	return sum
}

func TestARayWorkerWhoseRayletCrashesRunsAgain(t *testing.T) {
	w := newWorld(t)
	w.createRayCluster()
	pods := w.rayPods(3)
	worker := pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Labels["ray.io/group"] == "gpu" })]
	w.until(&worker, "ready", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Ready
	})
	// The probe may find the raylet before `ray start` has seen it: killed then, it would be another failure.
	for deadline := time.Now().Add(3 * time.Minute); !strings.Contains(w.logs(&worker, &corev1.PodLogOptions{}), "Ray runtime started"); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatal("ray start has not come to its end")
		}
	}
	if _, err := w.exec(&worker, "bash", "-c", "kill -9 $(pgrep -x raylet)"); err != nil {
		t.Fatal(err)
	}
	// Without in-tree autoscaling the restart policy is Always: the same pod runs again.
	restarted := w.until(&worker, "a restart", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].RestartCount == 1
	})
	if last := restarted.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 1 {
		t.Errorf("last termination: %+v, want exit code 1", last)
	}
	if log := w.logs(restarted, &corev1.PodLogOptions{Previous: true}); !strings.Contains(log, "raylet") {
		t.Errorf("the previous log does not tell of the raylet:\n%s", log)
	}
}
