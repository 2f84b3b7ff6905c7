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

// driver runs two tasks with a GPU each and prints where each ran.
const driver = `
import json, os, sys, time, ray
ray.init(address=sys.argv[1], logging_level="ERROR", log_to_driver=False)
deadline = time.time() + 300
while sum(n["Alive"] for n in ray.nodes()) < 3 and time.time() < deadline:
    time.sleep(0.1)
@ray.remote(num_gpus=1)
def where():
    time.sleep(0.5)
    return [os.environ["RAY_CLOUD_INSTANCE_ID"], os.environ["RAY_NODE_TYPE_NAME"], ray.util.get_node_ip_address()]
print(json.dumps(sorted(ray.get([where.remote(), where.remote()]))))
`

// The tests share one RayCluster, which takes longer to start than they take.
func TestARayCluster(t *testing.T) {
	f := newFixture(t)
	begin := time.Now()
	f.createRayCluster()
	f.run("runs GPU tasks", func(f *fixture) { f.runGPUTasks(begin) })
	f.run("restarts a worker after a raylet crash", (*fixture).crashRaylet)
}

// run runs a subtest with the same agent.
func (f *fixture) run(name string, test func(*fixture)) {
	f.T.Run(name, func(t *testing.T) {
		sub := *f
		sub.T = t
		test(&sub)
	})
}

func (f *fixture) runGPUTasks(begin time.Time) {
	pods := f.rayPods(3)
	byNode := map[string]string{}
	for _, pod := range pods {
		byNode[pod.Labels["ray.io/group"]] = pod.Spec.NodeName
	}
	if byNode["gpu"] != "gpu-0" || byNode["mig"] != "mig-0" {
		f.Errorf("groups run on %v", byNode)
	}
	head := pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Labels["ray.io/node-type"] == "head" })]

	python := filepath.Join(f.cluster.RayEnv(devcluster.DefaultRay), "bin", "python")
	f.untilReady(&head) // a driver does not wait long for a GCS
	output, err := exec.CommandContext(f.Context(), python, "-c", driver, head.Status.PodIP+":6379").Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		f.Fatalf("driver: %v\n%s", err, failed.Stderr)
	}
	if err != nil {
		f.Fatalf("driver: %v", err)
	}
	f.Logf("two GPU tasks had run %.1f s after the RayCluster was created", time.Since(begin).Seconds())
	var got, want [][]string
	if err := json.Unmarshal(output, &got); err != nil {
		f.Fatalf("driver printed %q: %v", output, err)
	}
	for _, pod := range pods {
		if pod.Name != head.Name {
			want = append(want, []string{pod.Name, pod.Labels["ray.io/group"], pod.Status.PodIP})
		}
	}
	slices.SortFunc(want, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("pod, group and address of the tasks (-want +got):\n%s", diff)
	}
	for _, pod := range pods {
		ready := f.untilReady(&pod)
		f.Logf("%s: %d MiB PSS", ready.Name, f.pss(ready)>>20)
	}
}

func (f *fixture) untilReady(pod *corev1.Pod) *corev1.Pod {
	f.Helper()
	return f.until(pod, "ready", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Ready
	})
}

func (f *fixture) createRayCluster() {
	f.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(aRayCluster), &object.Object); err != nil {
		f.Fatal(err)
	}
	clusters := f.cluster.Dynamic().Resource(rayClusters).Namespace("default")
	if _, err := clusters.Create(f.Context(), &object, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		ctx := context.Background()
		if err := clusters.Delete(ctx, "real", metav1.DeleteOptions{}); err != nil {
			f.Error(err)
		}
		begin := time.Now()
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
			pods, err := f.listRayPods(ctx)
			return err == nil && len(pods) == 0, nil
		})
		if err != nil {
			f.Errorf("pods still exist after the RayCluster was deleted: %v", err)
		}
		f.Logf("all pods were deleted %.1f s after the RayCluster was deleted", time.Since(begin).Seconds())
	})
}

func (f *fixture) listRayPods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := f.cluster.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "ray.io/cluster=real"})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// rayPods waits until the cluster has this many pods, all with an address.
func (f *fixture) rayPods(count int) []corev1.Pod {
	f.Helper()
	var pods []corev1.Pod
	err := wait.PollUntilContextTimeout(f.Context(), 50*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		pods, err = f.listRayPods(ctx)
		unaddressed := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Status.PodIP == "" })
		return err == nil && len(pods) == count && !unaddressed, nil
	})
	if err != nil {
		f.Fatalf("%d pods, want %d with an address: %v", len(pods), count, err)
	}
	return pods
}

// pss returns the memory of all processes in the pod's PID namespace, or 0 if it cannot read it.
func (f *fixture) pss(pod *corev1.Pod) int64 {
	f.Helper()
	output, err := f.exec(pod, "bash", "-c", "cat /proc/[0-9]*/smaps_rollup 2>/dev/null | grep ^Pss:")
	if err != nil {
		f.Logf("reading memory: %v", err)
		return 0
	}
	sum := int64(0)
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			f.Fatal(err)
		}
		sum += kib << 10
	}
	return sum
}

func (f *fixture) crashRaylet() {
	pods := f.rayPods(3)
	worker := pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Labels["ray.io/group"] == "gpu" })]
	f.untilReady(&worker)
	// The probe can succeed before `ray start` has found the raylet. To kill the raylet then would be another failure.
	err := wait.PollUntilContextTimeout(f.Context(), time.Second, 3*time.Minute, true,
		func(context.Context) (bool, error) {
			return strings.Contains(f.logs(&worker, &corev1.PodLogOptions{}), "Ray runtime started"), nil
		})
	if err != nil {
		f.Fatalf("`ray start` did not complete: %v", err)
	}
	var before int32 // on a slow machine, Ray may have given up before
	f.until(&worker, "its status", func(p *corev1.Pod) bool {
		if len(p.Status.ContainerStatuses) == 1 {
			before = p.Status.ContainerStatuses[0].RestartCount
		}
		return len(p.Status.ContainerStatuses) == 1
	})
	if _, err := f.exec(&worker, "bash", "-c", "kill -9 $(pgrep -x raylet)"); err != nil {
		f.Fatal(err)
	}
	// Without in-tree autoscaling the restart policy is Always, so the same pod restarts.
	restarted := f.until(&worker, "a restart", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].RestartCount > before
	})
	if last := restarted.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 1 {
		f.Errorf("last termination: %+v, want exit code 1", last)
	}
	if log := f.logs(restarted, &corev1.PodLogOptions{Previous: true}); !strings.Contains(log, "raylet") {
		f.Errorf("the previous log does not mention the raylet:\n%s", log)
	}
}
