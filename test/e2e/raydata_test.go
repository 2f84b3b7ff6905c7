package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/devcluster/kit"
	"heliostat.dev/heliostat/test/rig"
)

// rayData is the set of packages that Ray Data needs in addition to Ray. It is a layer of its own, because it is a 90
// MB download that no other test needs.
var rayData = kit.Tool{Name: "raydata", Version: "26.0.1", Lock: "raydata.lock", MinPython: 10, MaxPython: 14}

// utilization makes Ray Data's autoscaler evaluate the last 2 s instead of 10 s, and request nodes every 2 s. V2
// requests nodes by their shapes. It was the default in Ray 2.53 and in some later releases, and is optional in 2.60.
var utilization = []string{
	"RAY_DATA_CLUSTER_AUTOSCALER=V2", "RAY_DATA_CLUSTER_UTIL_AVG_WINDOW_S=2", "RAY_DATA_MIN_GAP_BETWEEN_AUTOSCALING_REQUESTS=2",
}

// TestRayDataGetsAGPUGroupAtZero runs pipelines with GPU actors. The head has one GPU.
//
// The first pipeline needs no cluster config: no GPU is free, so the first actor of its pool is pending, which is ordinary
// demand. Ray Train reads the cluster config before that, and does not wait for workers that cannot be launched.
//
// The others have the head's GPU for their first actor. Ray Data starts no second actor before there is a GPU for it, so
// Heliostat sees no pending demand. Ray Data requests one more node of each shape that it knows. Without the cluster
// config it knows no shape. With the cluster config it knows the shape of the group with zero replicas.
func TestRayDataGetsAGPUGroupAtZero(t *testing.T) {
	t.Parallel()
	layer := layerOf(t, rayData)
	group := rig.Group{Name: "gpu", Max: 2, CPU: "2", Devices: map[string]int64{"nvidia.com/gpu": 1}}
	s := stageLayer(t, layer, map[string]any{"num-cpus": "1", "num-gpus": "1", "resources": `"{\"accelerator_type:A100\": 1}"`},
		rig.Cluster{Name: "data", IdleSeconds: 600, Groups: []rig.Group{group}})

	s.step("Ray Train trains on as many GPUs as there may be")
	driver := s.driveData(layer)
	s.configured(driver, "at the start", map[string][2]int{"headgroup": {1, 1}, "gpu": {0, 2}})
	each := map[string]float64{"GPU": 1, "accelerator_type:A100": 0.001}
	s.do(driver, rig.Command{Do: "train", ID: "three", Workers: 3, Resources: each}, rig.Command{Do: "train", ID: "four", Workers: 4, Resources: each})
	s.see(driver, "three", "trains")
	if e := s.see(driver, "four", "refused"); !strings.Contains(e.Error, `{"GPU": 4}`) || !strings.Contains(e.Error, `{"GPU": 3}`) {
		t.Errorf("Ray Train refuses four workers because %q, want because of 4 GPUs where there may be 3", e.Error)
	}

	s.step("the first actor of a pool is pending: no cluster config is needed")
	s.do(driver, actor("on the head", 1))
	s.see(driver, "on the head", "running")
	s.forgetsTheClusterConfig(driver)
	s.do(driver, pipeline("first", 3, 1))
	s.ranOn(driver, "first", s.workers("gpu", 1)[0])
	s.see(driver, "first", "done")
	s.disconnect(driver)
	s.idleTimeout(2)
	s.workers("gpu", 0)
	s.dead("gpu")
	s.idleTimeout(600)

	s.step("the second actor is not pending: without the cluster config, Ray Data asks for nothing")
	driver = s.driveData(layer, utilization...)
	s.configured(driver, "after changes", map[string][2]int{"headgroup": {1, 1}, "gpu": {0, 2}})
	s.forgetsTheClusterConfig(driver)
	s.do(driver, pipeline("without", 15, 2))
	s.see(driver, "without", "done")
	s.created("gpu", 1)
	s.configured(driver, "while nothing changes", nil)

	s.step("with the cluster config, it asks for a node of the group")
	s.setGroup(0, map[string]any{"maxReplicas": 1})
	s.configured(driver, "after a change of the spec", map[string][2]int{"headgroup": {1, 1}, "gpu": {0, 1}})
	s.do(driver, pipeline("with", 10_000, 2)) // the pipeline ends with its driver
	s.ranOn(driver, "with", s.workers("gpu", 1)[0])
}

// forgetsTheClusterConfig takes the cluster config away from Ray's libraries, and the nodes that Ray Data counted for an
// earlier driver. Heliostat does not report again until something changes. A head that was slow to answer has it, and
// Heliostat sends it again.
func (s *scene) forgetsTheClusterConfig(driver *rig.Driver) {
	s.Helper()
	s.until("Heliostat to know that Ray has the cluster config", func() bool {
		log, err := os.ReadFile(fleet.Log)
		s.must(err)
		said := ""
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "the cluster config to Ray") && strings.Contains(line, s.namespace+"/"+s.name) {
				said = line
			}
		}
		return strings.Contains(said, "reported the cluster config")
	})
	s.do(driver, rig.Command{Do: "forget_cluster_config", ID: "forget"})
	s.see(driver, "forget", "forgotten")
}

// pipeline returns a pipeline with batches of one second each. Its pool grows from one actor with one GPU.
func pipeline(id string, batches, actors int) rig.Command {
	return rig.Command{Do: "data", ID: id, GPUs: 1, Seconds: 1, Batches: batches, Actors: [2]int{1, actors}}
}

// layerOf returns the directory of a tool's packages. They use the Python of Ray's environment.
func layerOf(t *testing.T, tool kit.Tool) string {
	t.Helper()
	bin, err := kit.EnsureTool(t.Context(), tool)
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(bin, "..", "lib", "python3.*", "site-packages"))
	if err != nil || len(found) != 1 {
		t.Fatalf("packages of %s: %v, %v, want one directory", bin, found, err)
	}
	version := filepath.Base(filepath.Dir(found[0]))
	if _, err := os.Stat(filepath.Join(filepath.Dir(lab.Python()), "..", "lib", version)); err != nil {
		t.Fatalf("the packages of %s are for %s, Ray's environment is not: %v", tool.Name, version, err)
	}
	return found[0]
}

// stageLayer creates a RayCluster whose pods have a layer of packages. The head starts with the given Ray parameters.
func stageLayer(t *testing.T, layer string, params map[string]any, cluster rig.Cluster) *scene {
	t.Helper()
	s := prepare(t, cluster.Name)
	cluster.Namespace = s.namespace
	object := cluster.Manifest()
	head, _, err := unstructured.NestedMap(object.Object, "spec", "headGroupSpec")
	s.must(err)
	head["rayStartParams"] = params
	setEnv(head, layer)
	s.must(unstructured.SetNestedMap(object.Object, head, "spec", "headGroupSpec"))
	workers, _, err := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
	s.must(err)
	for _, group := range workers {
		setEnv(group.(map[string]any), layer)
	}
	s.must(unstructured.SetNestedSlice(object.Object, workers, "spec", "workerGroupSpecs"))
	s.must(lab.Create(s.ctx, object))
	s.headAlive()
	return s
}

// setEnv adds the layer to the Python path of a group's Ray container.
func setEnv(group map[string]any, layer string) {
	containers, _, _ := unstructured.NestedSlice(group, "template", "spec", "containers")
	containers[0].(map[string]any)["env"] = []any{map[string]any{"name": "PYTHONPATH", "value": layer}}
	_ = unstructured.SetNestedSlice(group, containers, "template", "spec", "containers") // just read
}

// driveData connects a driver that has Ray Data installed.
func (s *scene) driveData(layer string, env ...string) *rig.Driver {
	s.Helper()
	return s.drive(append([]string{"PYTHONPATH=" + layer}, env...)...)
}

// configured waits until Ray's libraries read a cluster config with exactly these groups, each with its minimum and
// maximum number of nodes. Nil means no cluster config.
func (s *scene) configured(driver *rig.Driver, when string, want map[string][2]int) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for i := 0; ; i++ {
		id := fmt.Sprintf("config %s %d", when, i)
		s.must(driver.Do(rig.Command{Do: "cluster_config", ID: id}))
		e, err := driver.Wait(ctx, id, "cluster_config")
		s.must(err)
		got := map[string][2]int{}
		for _, g := range e.Groups {
			if _, learned := g.Resources["object_store_memory"]; g.Min > 0 && !learned {
				continue // its worker is joining, and Heliostat then reports again
			}
			got[g.Name] = [2]int{g.Min, g.Max}
			if g.Resources["memory"] != 1<<30 || g.Name == "gpu" && g.Resources["GPU"] != 1 {
				s.Errorf("%s: group %s has %v, want 1 GiB of memory, and 1 GPU in group gpu", when, g.Name, g.Resources)
			}
		}
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
		if want == nil || ctx.Err() != nil {
			s.Fatalf("%s the cluster config has %v, want %v", when, got, want)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// ranOn waits until an actor of a pipeline runs in a pod.
func (s *scene) ranOn(driver *rig.Driver, id, pod string) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for {
		events := driver.Events()
		if slices.ContainsFunc(events, func(e rig.Event) bool { return e.ID == id && e.Event == "running" && e.Pod == pod }) {
			return
		}
		if lost := driver.Lost(); len(lost) > 0 {
			s.Fatalf("pipeline %s: %s", id, lost[0].Error)
		}
		if ctx.Err() != nil {
			var ran []string
			for _, e := range events {
				ran = append(ran, strings.Join([]string{e.ID, e.Event, e.Pod}, " "))
			}
			s.Fatalf("no actor of pipeline %s ran in pod %s; events: %s", id, pod, strings.Join(ran, ", "))
		}
		time.Sleep(100 * time.Millisecond)
	}
}
