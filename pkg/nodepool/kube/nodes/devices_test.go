package nodes

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/dra"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// failing is an API server with a list that responds with this error, if it is not nil.
func failing(err error, list ...unstructured.Unstructured) *fakeClaims {
	f := &fakeClaims{list: list}
	if err != nil {
		f.err.Store(&err)
	}
	return f
}

func objectIn(text string) unstructured.Unstructured {
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		panic(err)
	}
	return unstructured.Unstructured{Object: fields}
}

// sliceOn is the ResourceSlice of a node with two cards.
func sliceOn(node string) unstructured.Unstructured {
	return objectIn(fmt.Sprintf(`{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %[1]s-gpu, resourceVersion: "1"}, spec: {driver: gpu.nvidia.com, nodeName: %[1]s,
pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}, devices: [
  {name: gpu-0, attributes: {type: {string: gpu}, uuid: {string: GPU-a}}},
  {name: gpu-1, attributes: {type: {string: gpu}, uuid: {string: GPU-b}}}]}}`, node))
}

// claimOn is a ResourceClaim that has these devices of a node.
func claimOn(name, node string, devices ...string) unstructured.Unstructured {
	var results []string
	for _, device := range devices {
		results = append(results, fmt.Sprintf(`{request: gpu, driver: gpu.nvidia.com, pool: %s, device: %s}`, node, device))
	}
	return objectIn(fmt.Sprintf(`{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: %s, namespace: other, resourceVersion: "1"},
status: {allocation: {devices: {results: [%s]}}}}`, name, strings.Join(results, ", ")))
}

func TestNodesHaveLessFreeByTheirDevicesInClaims(t *testing.T) {
	pods := &fakePods{list: []corev1.Pod{*kubePod("p", "a", "0")}}
	slices := &fakeClaims{list: []unstructured.Unstructured{sliceOn("a"), sliceOn("b")}}
	claims := &fakeClaims{list: []unstructured.Unstructured{claimOn("c", "b", "gpu-0", "gpu-1")}}
	besideDevices(t, "0", pods, slices, claims, func(t *testing.T, n *nodes, changes *atomic.Int32) {
		used := func(what, want string) {
			t.Helper()
			elapse(2 * nodesPause)
			var got []string
			for _, node := range n.view.Load().nodes {
				got = append(got, fmt.Sprint(node.Name, " ", node.Use.Requests["nvidia.com/gpu"]))
			}
			if text := strings.Join(got, ", "); text != want {
				t.Errorf("%s: %s, want %s", what, text, want)
			}
		}
		used("the first list", "a 0, b 2")
		before := changes.Load()
		added := claimOn("d", "a", "gpu-1")
		claims.stream.Add(&added)
		used("another claim", "a 1, b 2")
		view := n.view.Load()
		claims.stream.Modify(&added)
		foreign := objectIn(`{kind: ResourceClaim, metadata: {name: nic, namespace: other}, status: {allocation: {devices: {results: [{driver: net.example, pool: a, device: gpu-0}]}}}}`)
		claims.stream.Add(&foreign)
		used("a claim that did not change, and one for a network card", "a 1, b 2")
		if n.view.Load() != view {
			t.Error("a new view without a change")
		}
		none := claimOn("c", "b")
		claims.stream.Modify(&none)
		used("a claim that has nothing any more", "a 1, b 0")
		claims.stream.Delete(&added)
		used("a claim that is gone", "a 0, b 0")
		if changes.Load() != before {
			t.Error("claims start cycles of all RayClusters")
		}
	})
}

func TestForbiddenClaimsAreReported(t *testing.T) {
	group := func(resource string) *nodepool.Cluster {
		return &nodepool.Cluster{Key: llm, UID: resource, Groups: []nodepool.WorkerGroup{
			{Name: "one", Max: 1, Pod: landing.PodShape{Requests: landing.Quantities{resource: raydemand.One}}},
		}}
	}
	for name, test := range map[string]struct {
		slices, claims error
		pods           bool // may be read
		resource       string
		want           string
	}{
		"claims are forbidden":           {nil, errForbidden, true, "nvidia.com/gpu", ClaimsUnknown},
		"slices are forbidden":           {errForbidden, nil, true, "nvidia.com/gpu", ClaimsUnknown},
		"a group without GPUs":           {nil, errForbidden, true, "cpu", ""},
		"both may be read":               {nil, nil, true, "nvidia.com/gpu", ""},
		"pods are forbidden as well":     {errForbidden, errForbidden, false, "nvidia.com/gpu", PodsUnknown},
		"only claims, and not the nodes": {nil, errForbidden, false, "nvidia.com/gpu", PodsUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			pods := &fakePods{}
			pods.forbidden.Store(!test.pods)
			slices, claims := failing(test.slices, sliceOn("a")), failing(test.claims, claimOn("c", "a", "gpu-0"))
			besideDevices(t, "8", pods, slices, claims, func(t *testing.T, n *nodes, _ *atomic.Int32) {
				codes := func() (found string) {
					cluster := group(test.resource)
					n.addTo(cluster)
					for _, f := range cluster.Findings {
						if f.Code == ClaimsUnknown || f.Code == PodsUnknown {
							found += f.Code
						}
					}
					return found
				}
				if got := codes(); got != test.want {
					t.Errorf("findings %q, want %q", got, test.want)
				}
				slices.err.Store(nil)
				claims.err.Store(nil)
				pods.forbidden.Store(false)
				elapse(2 * reflector.ForbiddenPause)
				if n.view.Load().nodes[0].Use == nil {
					t.Error("what pods use is unknown after the rights were granted")
				}
				if got := codes(); got != "" {
					t.Errorf("findings %q after the rights were granted", got)
				}
			})
		})
	}
}

func TestANodeIsReadWithItsDevices(t *testing.T) {
	const instance = `{name: gpu-0-mig-1g5gb-19-%[1]d, attributes: {type: {string: mig}, parentUUID: {string: GPU-0}, profile: {string: 1g.5gb}}}`
	slice := objectIn(`{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: gpu.nvidia.com, nodeName: a, pool: {name: a, generation: 1, resourceSliceCount: 1},
devices: [` + fmt.Sprintf(instance, 0) + ", " + fmt.Sprintf(instance, 1) + `]}}`)
	for name, labels := range map[string]map[string]string{
		"a node with labels of its card": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960", "nvidia.com/gpu.count": "1"},
		"a node without labels":          {},
	} {
		n := newNodes(nil, slog.New(slog.DiscardHandler), func() {})
		n.readUse(nil, newNodeDevices(nil, nil, n.log, n.touchDevices))
		n.update(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels}})
		kinds := func() (got []gpuinfo.Kind) {
			if gpus := n.viewNow().nodes[0].GPUs; gpus != nil {
				got = append(got, gpus.Kind)
			}
			return got
		}
		before := kinds()
		for _, change := range []struct {
			objects []unstructured.Unstructured
			want    []gpuinfo.Kind
		}{{[]unstructured.Unstructured{slice}, []gpuinfo.Kind{gpuinfo.MIG}}, {nil, before}} {
			n.use.devices.change(dra.ResourceSlices, func() bool {
				n.use.devices.devices.Clear(dra.ResourceSlices)
				for _, object := range change.objects {
					var typed resourcev1.ResourceSlice
					must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed))
					n.use.devices.devices.Put(&typed)
				}
				return true
			})
			if got := kinds(); !slices.Equal(got, change.want) {
				t.Errorf("%s: with %d slices the kind is %v, want %v", name, len(change.objects), got, change.want)
			}
		}
	}
}

func TestADeclaredShapeIsTriedForWhatAClassSupplies(t *testing.T) {
	config, err := decode.ReadPools(strings.NewReader("complete: true\npools: [{name: gpu, maxNodes: 3, shape: {allocatable: {cpu: 8}}}]"))
	must(t, err)
	for name, forbidden := range map[string]bool{"nodes are known": false, "nodes are forbidden": true} {
		n := newNodes(&fakeNodes{}, slog.New(slog.DiscardHandler), func() {})
		n.configure(sharing.Reader{}, config)
		n.readUse(nil, newNodeDevices(nil, nil, n.log, n.touchDevices))
		if n.replace(nil, ""); forbidden {
			n.forbid(errForbidden)
		}
		judge := func(want landing.State) {
			t.Helper()
			n.view.Store(n.viewNow())
			cluster := nodepool.Cluster{Key: llm, Groups: []nodepool.WorkerGroup{{
				Name: "g", Max: 9, Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}},
			}}}
			n.addTo(&cluster)
			if got := cluster.Groups[0].Landing; (got == nil) != (want == "") || got != nil && got.State != want {
				t.Errorf("%s: verdict %+v, want %q", name, got, want)
			}
		}
		devices := n.use.devices
		change := func(apply func() bool) { devices.change(dra.DeviceClasses, apply) }
		change(func() bool { return devices.devices.Know(dra.ResourceSlices) })
		change(func() bool { return devices.devices.Know(dra.DeviceClasses) })
		judge(landing.Nowhere)
		extended := "nvidia.com/gpu"
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &extended}}
		change(func() bool { return devices.devices.Put(class) })
		n.mu.Lock()
		if !n.stale {
			t.Errorf("%s: a new class leaves the view as it is", name)
		}
		n.mu.Unlock()
		if forbidden {
			judge("") // nothing is proven
		} else {
			judge(landing.Trying)
		}
	}
}

func TestClaimsOfTheHeadCount(t *testing.T) {
	n := newNodes(&fakeNodes{}, slog.New(slog.DiscardHandler), func() {})
	n.readUse(nil, newNodeDevices(nil, nil, n.log, n.touchDevices))
	n.replace([]*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, "")
	class, extended := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}, "nvidia.com/gpu"
	class.Spec.ExtendedResourceName = &extended
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "two", Namespace: llm.Namespace}}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", Count: 2}}}
	n.use.devices.devices.Put(class)
	n.use.devices.devices.Put(template)
	n.view.Store(n.viewNow())
	shared := &landing.PodShape{Requests: landing.Quantities{"cpu": raydemand.One}, ClaimTemplates: []string{"two"}}
	cluster := nodepool.Cluster{Key: llm, Head: nodepool.Head{Pod: "head", Shape: shared}}
	n.addTo(&cluster)
	head, waits := cluster.HeadPromise()
	if !waits || head.Shape.Requests[gpuinfo.ClassPrefix+"gpu"] != raydemand.Whole(2) || len(shared.Requests) != 1 {
		t.Errorf("the head is promised %+v, want two devices of the class; what all readings share is %v", head.Shape, shared.Requests)
	}
}
