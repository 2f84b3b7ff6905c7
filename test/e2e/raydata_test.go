package e2e

import (
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

// TestRayDataGetsAGPUGroupAtZero runs a pipeline with a GPU actor. The head has one GPU, which another actor has, so the
// first actor of the pool is pending, which is ordinary demand.
func TestRayDataGetsAGPUGroupAtZero(t *testing.T) {
	t.Parallel()
	layer := layerOf(t, rayData)
	group := rig.Group{Name: "gpu", Max: 2, CPU: "2", Devices: map[string]int64{"nvidia.com/gpu": 1}}
	s := stageLayer(t, layer, map[string]any{"num-cpus": "1", "num-gpus": "1", "resources": `"{\"accelerator_type:A100\": 1}"`},
		rig.Cluster{Name: "data", IdleSeconds: 600, Groups: []rig.Group{group}})
	driver := s.driveData(layer)
	s.do(driver, actor("on the head", 1))
	s.see(driver, "on the head", "running")
	s.do(driver, pipeline("first", 3, 1))
	s.ranOn(driver, "first", s.workers("gpu", 1)[0])
	s.see(driver, "first", "done")
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
