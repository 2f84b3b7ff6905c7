// Package dra tests Heliostat with GPUs that only Dynamic Resource Allocation offers: the API server, the scheduler and
// the controllers of Kubernetes 1.36, the real KubeRay operator and real Ray. No kubelet runs here, so nothing runs a
// driver: the test publishes the slices that sigs.k8s.io/dra-example-driver v0.4.0 publishes for its profile gpu.
package dra

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

// patience is the limit of the test. It takes a minute on an idle machine.
const patience = 8 * time.Minute

const nodesYAML = `
- name: cpu-0
  labels: {pool: cpu}
  capacity: {cpu: "8", memory: 32Gi}
- name: dra-0
  labels: {pool: named}
  capacity: {cpu: "8", memory: 32Gi}
- name: dra-1
  labels: {pool: claimed}
  capacity: {cpu: "8", memory: 32Gi}
`

// poolsYAML says that no pool grows, so that devices alone decide how many pods there can be.
const poolsYAML = `
complete: true
pools: [{name: cpu, maxNodes: 1}, {name: named, maxNodes: 1}, {name: claimed, maxNodes: 1}]
`

// TestDevicesBoundGroups launches workers from zero, one group by the name nvidia.com/gpu, which no node announces, and
// one by a claim of a template. There are more tasks than devices: each device gets a worker, and no more are launched.
func TestDevicesBoundGroups(t *testing.T) {
	rig.Quiet()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	nodes, err := nodeagent.LoadNodes(strings.NewReader(nodesYAML))
	must(t, err)
	lab, err := rig.Start(ctx, rig.Options{Out: os.Stderr, Nodes: nodes, Kubernetes: "1.36.0"})
	must(t, err)
	defer func() { must(t, lab.Stop(context.Background())) }()

	const namespace, name = "team", "dra"
	publish(t, lab, "dra-0", 2)
	publish(t, lab, "dra-1", 1)
	extended := "nvidia.com/gpu"
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.example.com"}, Spec: resourcev1.DeviceClassSpec{
		ExtendedResourceName: &extended,
		Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "device.driver == 'gpu.example.com'"}}},
	}}
	_, err = lab.Kube.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})
	must(t, err)

	pools := filepath.Join(t.TempDir(), "pools.yaml")
	must(t, os.WriteFile(pools, []byte(poolsYAML), 0o600))
	fleet, err := lab.Serve(ctx, "--pools", pools, "--pool-label", "pool")
	must(t, err)
	defer func() {
		if fleet.Stop(context.Background()); t.Failed() {
			t.Logf("Heliostat's last lines:\n%s", fleet.LastLines(40))
		}
	}()

	must(t, lab.Create(ctx, cluster(t, namespace, name)))
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "one-gpu", Namespace: namespace}}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: class.Name,
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: "device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0"}}},
	}}}
	_, err = lab.Kube.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, template, metav1.CreateOptions{})
	must(t, err)
	must(t, lab.HeadAlive(ctx, namespace, name))
	driver, err := lab.Driver(ctx, namespace, name, namespace)
	must(t, err)
	defer driver.Kill()

	t.Log("four tasks with a GPU each, and three devices")
	for i := range 4 {
		must(t, driver.Do(rig.Command{Do: "task", ID: fmt.Sprint("task-", i), GPUs: 1}))
	}
	running := func() (n int) {
		for _, event := range driver.Events() {
			if event.Event == "running" {
				n++
			}
		}
		return n
	}
	eventually(t, ctx, "three tasks to run", func() bool { return running() == 3 })
	eventually(t, ctx, "the fourth task to be capped", func() bool {
		return slices.Contains(unmet(ctx, fleet, namespace, name), "capped")
	})
	time.Sleep(5 * time.Second) // several decisions
	pods, err := lab.WorkerPods(ctx, namespace, name)
	must(t, err)
	on := map[string]int{}
	for i := range pods {
		on[pods[i].Labels["ray.io/group"]+" on "+pods[i].Spec.NodeName]++
	}
	if on["named on dra-0"] != 2 || on["claimed on dra-1"] != 1 || len(pods) != 3 {
		t.Errorf("pods %v, want two of group named on dra-0 and one of group claimed on dra-1", on)
	}
	if n := allocated(t, ctx, lab, namespace); n != 3 {
		t.Errorf("%d claims have devices, want 3", n)
	}
	if running() != 3 || len(driver.Lost()) > 0 {
		t.Errorf("%d tasks run, %v lost, want 3 and none", running(), driver.Lost())
	}
}

// cluster returns a RayCluster with a group by name and one by a claim. rayStartParams name the claimed GPU,
// because the operator passes only what limits say.
func cluster(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := rig.Cluster{Namespace: namespace, Name: name, HeadNodes: map[string]string{"pool": "cpu"}, Groups: []rig.Group{
		{Name: "named", Max: 8, Devices: map[string]int64{"nvidia.com/gpu": 1}, NodeSelector: map[string]string{"pool": "named"}},
		{Name: "claimed", Max: 8, Params: map[string]string{"num-gpus": "1"}, NodeSelector: map[string]string{"pool": "claimed"}},
	}}.Manifest()
	groups, _, err := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
	must(t, err)
	pod := groups[1].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	pod["resourceClaims"] = []any{map[string]any{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}}
	resources := pod["containers"].([]any)[0].(map[string]any)["resources"].(map[string]any)
	resources["claims"] = []any{map[string]any{"name": "gpu"}}
	must(t, unstructured.SetNestedSlice(object.Object, groups, "spec", "workerGroupSpecs"))
	return object
}

// publish publishes the devices of a node as the driver's profile gpu does (internal/profiles/gpu).
func publish(t *testing.T, lab *rig.Rig, node string, cards int) {
	t.Helper()
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpu.example.com"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}}
	for i := range cards {
		index, uuid, model, version := int64(i), fmt.Sprintf("gpu-%s-%d", node, i), "LATEST-GPU-MODEL", "1.0.0"
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name: fmt.Sprint("gpu-", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"index": {IntValue: &index}, "uuid": {StringValue: &uuid}, "model": {StringValue: &model}, "driverVersion": {VersionValue: &version},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	_, err := lab.Kube.ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{})
	must(t, err)
}

// allocated counts the claims that have a device and that a pod has reserved.
func allocated(t *testing.T, ctx context.Context, lab *rig.Rig, namespace string) (n int) {
	t.Helper()
	claims, err := lab.Kube.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	must(t, err)
	for i := range claims.Items {
		if status := claims.Items[i].Status; status.Allocation != nil && len(status.ReservedFor) == 1 {
			n += len(status.Allocation.Devices.Results)
		}
	}
	return n
}

// unmet returns the codes of what Heliostat does not serve.
func unmet(ctx context.Context, fleet *rig.Heliostat, namespace, name string) (codes []string) {
	code, body, err := fleet.Call(ctx, http.MethodGet, "/v1/namespaces/"+namespace+"/rayclusters/"+name, "")
	var status struct {
		Unmet []struct{ Reason struct{ Code string } }
	}
	if err != nil || code != http.StatusOK || json.Unmarshal(body, &status) != nil {
		return nil
	}
	for _, u := range status.Unmet {
		codes = append(codes, u.Reason.Code)
	}
	return codes
}

func eventually(t *testing.T, ctx context.Context, what string, done func() bool) {
	t.Helper()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited for %s: %v", what, context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
