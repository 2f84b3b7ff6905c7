package engine

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
)

// BenchmarkLive reports what `serve` keeps of a fleet at rest: bytes that are live after a collection, and stacks, for
// each RayCluster with two workers and for each worker more. It is all that decides, publishes and records, with the
// objects and the connections that this rests on. The heads are simulated, in another process. Watches and nodes of
// Kubernetes are not in it.
func BenchmarkLive(b *testing.B) {
	const clusters, few, many = 100, 2, 52
	for b.Loop() {
		small, large := liveFleet(b, clusters, few), liveFleet(b, clusters, many)
		b.ReportMetric(small.heap/clusters, "B/RayCluster")
		b.ReportMetric((large.heap-small.heap)/clusters/(many-few), "B/worker")
		b.ReportMetric(small.stack/clusters, "stack-B/RayCluster")
		b.ReportMetric(small.goroutines/clusters, "goroutines/RayCluster")
	}
	b.ReportMetric(0, "ns/op")
}

// kept is what a fleet keeps.
type kept struct{ heap, stack, goroutines float64 }

// now returns what the process keeps at present.
func (k *kept) now() {
	var m runtime.MemStats
	for range 3 { // the second collection empties pools, the third frees what finalizers held
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	*k = kept{float64(m.HeapAlloc), float64(m.StackInuse), float64(runtime.NumGoroutine())}
}

// BenchmarkAtRest is the cost of one decision about a RayCluster at rest every 20 s, with all that publishes and
// records it, and the cost of one reading that keeps the decision. The head is simulated, in another process.
func BenchmarkAtRest(b *testing.B) {
	const workers = 50
	f, loop := newFleetAtRest(b, 1, workers)
	key := clusterAtRest(0)
	for range 4 {
		loop.Cycle(b.Context(), key)
		f.pass(time.Minute)
	}
	b.Run("decision", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			loop.Cycle(b.Context(), key)
			f.pass(20 * time.Second)
		}
	})
	b.Run("reading", func(b *testing.B) {
		loop.Cycle(b.Context(), key)
		b.ReportAllocs()
		for b.Loop() {
			if _, stands := loop.Stands(b.Context(), key); !stands {
				b.Fatal("the decision does not stand")
			}
		}
	})
}

func liveFleet(b *testing.B, clusters, workers int) (used kept) {
	var before, after kept
	f, loop := newFleetAtRest(b, clusters, workers)
	before = f.before
	ended := f.work(b.Context(), loop)
	after.now()
	for key := range f.decoded {
		d, _ := loop.Decision(key)
		if d == nil || d.RayErr != "" || d.Err != "" || len(d.Snapshot.Nodes) != workers {
			b.Fatalf("%s is not at rest: %+v", key, d)
		}
	}
	ended()
	loop.Close()
	runtime.KeepAlive(f.options)
	return kept{after.heap - before.heap, after.stack - before.stack, after.goroutines - before.goroutines}
}

// newFleetAtRest returns a fleet without decisions, and its loop.
func newFleetAtRest(b *testing.B, clusters, workers int) (*fleetAtRest, *controller.Controller) {
	heads := startHeads(b, clusters, workers)
	f := &fleetAtRest{decoded: map[nodepool.ClusterKey]decode.Decoded{}, pods: map[nodepool.ClusterKey][]*decode.Pod{},
		clock: time.Now().Truncate(time.Second)}
	f.before.now()
	for i := range clusters {
		f.add(b, i, workers)
	}
	log := slog.New(slog.DiscardHandler)
	tel, err := telemetry.Start(b.Context(), telemetry.Config{Log: log})
	must(b, err)
	f.options = newOptions(controller.Fleet, portFlags{})
	l := &f.options.loop
	l.DefaultMode, l.CyclesPerSecond, l.GCSTimeout, l.Log, l.Now = nodepool.Managed, 1e6, time.Minute, log, f.now
	l.Addons = f.options.addons(nil, f.options.passOn(log, tel)) // they write nothing at rest
	loop := controller.New(f, func(_ context.Context, cluster nodepool.Cluster) (addon.Ray, error) {
		return gcs.Dial(gcs.Config{Address: heads[cluster.Key]})
	}, f.options.loop)
	b.Cleanup(loop.Close)
	return f, loop
}

// fleetAtRest has RayClusters as the watches keep them.
type fleetAtRest struct {
	controller.Kube // nil: nothing is written at rest
	decoded         map[nodepool.ClusterKey]decode.Decoded
	pods            map[nodepool.ClusterKey][]*decode.Pod
	options         *options
	before          kept // what the process kept before there was a fleet

	mu    sync.Mutex
	clock time.Time // guarded by mu
}

func (f *fleetAtRest) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clock
}

func (f *fleetAtRest) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock = f.clock.Add(d)
}

// Cluster implements controller.Kube.
func (f *fleetAtRest) Cluster(_ context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error) {
	return decode.Join(f.decoded[key], f.pods[key]), nil
}

// NamespaceMode implements controller.Kube.

// MayWrite implements controller.Kube.
func (*fleetAtRest) MayWrite(nodepool.ClusterKey) bool { return true }

// Event implements controller.Kube.
func (*fleetAtRest) Event(nodepool.Cluster, bool, string, string) {}

func (*fleetAtRest) OwnerEvent(nodepool.Cluster, bool, string, string) {}

// work decides about all RayClusters until they are at rest, each in a goroutine that stays until it is ended, as in
// package kube.
func (f *fleetAtRest) work(ctx context.Context, loop *controller.Controller) (end func()) {
	const cycles, readings = 4, 2
	ctx, end = context.WithCancel(ctx)
	done := make(chan struct{})
	var turns []chan func(nodepool.ClusterKey)
	for key := range f.decoded {
		turn := make(chan func(nodepool.ClusterKey))
		turns = append(turns, turn)
		go func() {
			for {
				select {
				case do := <-turn:
					do(key)
					done <- struct{}{}
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	for i := range cycles + readings {
		for _, turn := range turns {
			turn <- func(key nodepool.ClusterKey) {
				if i < cycles {
					loop.Cycle(ctx, key)
				} else {
					loop.Stands(ctx, key)
				}
			}
			<-done // one after the other, so that a slow machine is no slow head
		}
		if i < cycles-1 {
			f.pass(time.Minute) // the readings follow the last cycle at once, so that they keep its decision
		}
	}
	return end
}

func clusterAtRest(i int) nodepool.ClusterKey {
	return nodepool.ClusterKey{Namespace: "research", Name: fmt.Sprintf("raycluster-%04d", i)}
}

func workerAtRest(key nodepool.ClusterKey, i int) string {
	return fmt.Sprintf("%s-gpu-group-worker-%05d", key.Name, i)
}

// add adds a RayCluster with its pods, as the operator and a kubelet make them.
func (f *fleetAtRest) add(b *testing.B, i, workers int) {
	key := clusterAtRest(i)
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf(manifestAtRest, key.Name, key.Namespace, uuid.NewUUID(), workers)
	must(b, json.Unmarshal([]byte(text), &object.Object))
	pods := []corev1.Pod{*f.pod(key, "head", "headgroup", key.Name+"-head-x7k2p", 0)}
	for i := range workers {
		pods = append(pods, *f.pod(key, "worker", "gpu-group", workerAtRest(key, i), i+1))
	}
	f.pods[key], f.decoded[key] = decode.PodsOf(pods), decode.Decode(sharing.Reader{}, object)
}

func (f *fleetAtRest) pod(key nodepool.ClusterKey, kind, group, name string, i int) *corev1.Pod {
	now := metav1.NewTime(f.clock.Add(-time.Hour))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, UID: types.UID(uuid.NewUUID()),
			ResourceVersion: fmt.Sprint(1_000_000 + i), CreationTimestamp: now,
			Labels: map[string]string{"ray.io/cluster": key.Name, "ray.io/node-type": kind, "ray.io/group": group}},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%02d", i), Containers: []corev1.Container{{Name: "ray-" + kind}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: addressAtRest(i),
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "ray-" + kind, Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}}},
	}
}

func addressAtRest(i int) string { return fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250) }

const manifestAtRest = `{"apiVersion": "ray.io/v1", "kind": "RayCluster",
	"metadata": {"name": %q, "namespace": %q, "uid": %q, "resourceVersion": "1000000", "generation": 1},
	"status": {"observedGeneration": 1, "state": "ready"},
	"spec": {"rayVersion": "2.60.0", "enableInTreeAutoscaling": true, "autoscalerOptions": {"idleTimeoutSeconds": 60},
	"headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": {"spec": {"containers": [
		{"name": "ray-head", "image": "rayproject/ray:2.60.0", "resources": {"limits": {"cpu": "4", "memory": "16Gi"}}}]}}},
	"workerGroupSpecs": [{"groupName": "gpu-group", "replicas": %[4]d, "minReplicas": %[4]d, "maxReplicas": 60, "numOfHosts": 1,
		"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray-worker", "image": "rayproject/ray:2.60.0",
		"resources": {"limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}}}]}}}]}}`

func TestMain(m *testing.M) {
	if what := os.Getenv(asHeads); what != "" {
		if err := serveHeads(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// asHeads is the environment variable that makes the test binary run simulated heads: how many, with how many workers.
const asHeads = "HELIOSTAT_TEST_AS_HEADS"

// startHeads returns the addresses of heads in another process.
func startHeads(b *testing.B, clusters, workers int) map[nodepool.ClusterKey]string {
	self, err := os.Executable()
	must(b, err)
	heads := exec.Command(self)
	heads.Env, heads.Stderr = append(os.Environ(), fmt.Sprintf("%s=%d %d", asHeads, clusters, workers)), os.Stderr
	in, errIn := heads.StdinPipe()
	out, errOut := heads.StdoutPipe()
	if errIn != nil || errOut != nil || heads.Start() != nil {
		b.Fatal("cannot start the heads")
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = heads.Wait()
	})
	addresses, lines := map[nodepool.ClusterKey]string{}, bufio.NewScanner(out)
	for i := range clusters {
		if !lines.Scan() {
			b.Fatalf("the heads have ended: %v", lines.Err())
		}
		addresses[clusterAtRest(i)] = lines.Text()
	}
	return addresses
}

// serveHeads runs heads until its input ends. It prints their addresses.
func serveHeads(what string) error {
	var clusters, workers int
	if _, err := fmt.Sscan(what, &clusters, &workers); err != nil {
		return err
	}
	for i := range clusters {
		key := clusterAtRest(i)
		h := &rayHead{nodes: []*autoscalerpb.NodeState{idleNode(0, key.Name+"-head-x7k2p", "headgroup", nil)}}
		h.nodes[0].NodeIpAddress = addressAtRest(0)
		for i := range workers {
			ip := addressAtRest(i + 1)
			n := idleNode(i+1, workerAtRest(key, i), "gpu-group", map[string]float64{"CPU": 8, "GPU": 1, "memory": 32 << 30,
				"object_store_memory": 9 << 30, "accelerator_type:A100": 1, "node:" + ip: 1})
			n.NodeIpAddress = ip
			n.Labels = map[string]string{"ray.io/node-id": hex.EncodeToString(n.NodeId), "ray.io/node-group": "gpu-group",
				"ray.io/accelerator-type": "A100", "ray.io/market-type": "on-demand"}
			h.nodes = append(h.nodes, n)
		}
		if _, err := h.start(nil); err != nil {
			return err
		}
		fmt.Println(h.addr)
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func decided() *addon.Decision {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return &addon.Decision{
		Cluster: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, At: at, Took: 3 * time.Millisecond, Read: addon.LatestOf(at.Add(-2 * time.Second)),
		Mode: nodepool.Managed, Why: planner.Reason{Message: "managed by the default"}, RayErr: "the head does not answer",
		Kube: nodepool.Cluster{Freeze: true, RequestResources: []raydemand.Request{{Count: 3}}},
		Plan: planner.Plan{
			Groups:                 []planner.GroupPlan{{Name: "gpu", Current: 1, Desired: 2, Max: 4}},
			InfeasibleRequests:     []planner.UnmetRequest{{Request: raydemand.Request{Count: 5}, Reason: planner.Reason{Code: planner.Capped}}},
			InfeasibleGangRequests: []planner.UnmetGang{{Reason: planner.Reason{Code: planner.Capped}}},
		},
		Paused: "Ray's state cannot be read",
		Recent: []addon.Action{
			{At: at, Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", From: 1, To: 2, Message: "demand"},
			{At: at, Kind: addon.ActionDrain, Result: addon.ResultRefused, Group: "gpu", Pods: []string{"a"}},
			{At: at, Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", From: 2, To: 1, Pods: []string{"a"}},
			{At: at, Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", From: 1, To: 1, Pods: []string{"b"}},
		},
	}
}
