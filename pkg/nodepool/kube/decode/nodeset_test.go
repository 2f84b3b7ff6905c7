package decode

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

const statusOf130 = `time: 2024-05-01 10:00:00.000000000 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health: {status: Healthy}
nodeGroups:
- name: aks-gpu-12345678-vmss
  health:
    status: Healthy
    nodeCounts: {registered: {total: 1, ready: 1, unready: {total: 0, resourceUnready: 0}}, longUnregistered: 0, unregistered: 0}
    cloudProviderTarget: 1
    minSize: 0
    maxSize: 4
    lastProbeTime: "2024-05-01T10:00:00Z"
  scaleUp: {status: NoActivity}
- name: unmeasured
  health: {status: Healthy}
- name: without-maximum
  health: {minSize: 2, maxSize: 0}
`

// bounds are ceilings in short: group least-most, with limits behind.
func bounds(ceilings []landing.Ceiling) string {
	number := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}
	var texts []string
	for _, c := range ceilings {
		text := c.Group + " " + number(c.MinNodes) + "-" + number(c.MaxNodes)
		if len(c.Limits) > 0 {
			limits, _ := json.Marshal(c.Limits)
			text += " " + string(limits)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

func TestTheClusterAutoscalersStatusSaysHowFarGroupsMayGrow(t *testing.T) {
	ceilings, err := AutoscalerCeilings(statusOf130)
	if got := bounds(ceilings); got != "aks-gpu-12345678-vmss 0-4, unmeasured ?-?, without-maximum 2-?" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	for _, other := range []string{"not: [a status", "Cluster-autoscaler status at 2023-11-24 04:28:19 +0000 UTC:\nCluster-wide:\n  Health:  Healthy (ready=3)\n           LastProbeTime:  2023-11-24 04:28:19 +0000 UTC"} {
		if _, err := AutoscalerCeilings(other); err == nil || !strings.Contains(err.Error(), "not the YAML of release 1.30") {
			t.Errorf("%s: %v", other, err)
		}
	}
}

func TestKarpentersLimitsAreCeilings(t *testing.T) {
	var set NodeSet
	err := set.Read(strings.NewReader(`
apiVersion: v1
kind: List
items:
- {apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: gpu}, spec: {limits: {cpu: 100, nvidia.com/gpu: "16", memory: 2Pi, nodes: "3"}}}
- {apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: open}, spec: {}}
- {apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: static}, spec: {replicas: 2, limits: {nodes: "3"}}}
- {apiVersion: other.example/v1, kind: NodePool, metadata: {name: foreign}, spec: {limits: {cpu: none}}}
`))
	if want := `gpu ?-3 {"cpu":100,"nvidia.com/gpu":16}, open ?-?, static 2-2`; err != nil || bounds(set.Ceilings) != want {
		t.Errorf("ceilings %s, %v; want %s", bounds(set.Ceilings), err, want)
	}
	var bad NodeSet
	err = bad.Read(strings.NewReader(`
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: gpu}, spec: {limits: {cpu: many}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-status}, data: {status: "nodeGroups: ["}}
---
{apiVersion: v1, kind: Node, metadata: {name: gpu-0}}
`))
	if len(bad.Notes) != 2 || !strings.Contains(bad.Notes[0], "reading NodePool gpu: spec.limits.cpu many") || !strings.Contains(bad.Notes[1], "status") || len(bad.Nodes()) != 1 || err != nil {
		t.Errorf("what cannot be read of ceilings: notes %q, %d nodes, %v", bad.Notes, len(bad.Nodes()), err)
	}
}

// A slice and a claim as NVIDIA's driver and the scheduler write them, shortened.
const draManifest = `
kind: Node
metadata: {name: gpu-0}
status: {allocatable: {cpu: "8"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: old}
spec:
  driver: gpu.nvidia.com
  nodeName: gpu-0
  pool: {name: gpu-0, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-9, attributes: {type: {string: gpu}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: new}
spec:
  driver: gpu.nvidia.com
  nodeName: gpu-0
  pool: {name: gpu-0, generation: 2, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {type: {string: gpu}, uuid: {string: GPU-a}, productName: {string: NVIDIA A100-SXM4-40GB}, index: {int: 0}}
    capacity: {memory: {value: 40Gi}}
    taints: [{key: gpu.nvidia.com/unmonitored, effect: None}]
  - name: gpu-1-mig-3g20gb-9-4
    attributes: {type: {string: mig}, uuid: {string: MIG-b}, parentUUID: {string: GPU-b}, profile: {string: 3g.20gb}, gpu.nvidia.com/productName: {string: NVIDIA A100-SXM4-40GB}}
    capacity: {memory: {value: 19968Mi}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: network}
spec: {driver: net.example, nodeName: gpu-0, pool: {name: net, generation: 1, resourceSliceCount: 1}, devices: [{name: nic-0}]}
`

const claimManifest = `
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: mine, namespace: ml}
status: {allocation: {devices: {results: [{request: gpu, driver: gpu.nvidia.com, pool: gpu-0, device: gpu-0}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: watcher, namespace: ops}
status: {allocation: {devices: {results: [{request: gpu, driver: gpu.nvidia.com, pool: gpu-0, device: gpu-1-mig-3g20gb-9-4, adminAccess: true}]}}}
`

func TestDevicesOfResourceSlicesAreTakenByClaims(t *testing.T) {
	read := func(manifest string) []sharing.DRADevice {
		var set NodeSet
		must(t, set.Read(strings.NewReader(manifest)))
		return set.Nodes()[0].Devices
	}
	yes, no := true, false
	want := []sharing.DRADevice{
		{Name: "gpu-0", Type: "gpu", UUID: "GPU-a", Product: "NVIDIA A100-SXM4-40GB", MemoryMiB: 40960, Allocated: &yes},
		{Name: "gpu-1-mig-3g20gb-9-4", Type: "mig", UUID: "MIG-b", ParentUUID: "GPU-b", Product: "NVIDIA A100-SXM4-40GB", Profile: "3g.20gb", MemoryMiB: 19968, Allocated: &no},
	}
	if diff := cmp.Diff(want, read(draManifest+claimManifest)); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if got := read(draManifest); len(got) != 2 || got[0].Allocated != nil {
		t.Errorf("without claims it is not known what is taken: %+v", got)
	}
}

// A claim has a part of such a device, so it neither takes all of it nor has a card of its own.
func TestADeviceOfSeveralClaimsIsNoWholeCard(t *testing.T) {
	for several, want := range map[string]gpuinfo.Kind{"true": gpuinfo.UnknownKind, "false": gpuinfo.Whole} {
		var set NodeSet
		must(t, set.Read(strings.NewReader(strings.ReplaceAll(draManifest, "- name: gpu-0\n", "- name: gpu-0\n    allowMultipleAllocations: "+several+"\n")+claimManifest)))
		node := set.Nodes()[0]
		node.Devices = node.Devices[:1]
		read := sharing.Reader{}.Read(node)
		if read.Kind != want || (read.Isolation == gpuinfo.Hardware) != (several == "false") || (node.Devices[0].Allocated == nil) != (several == "true") {
			t.Errorf("several %s: %s with isolation %s; device %+v", several, read.Kind, read.Isolation, node.Devices[0])
		}
	}
}

func TestAListWithoutPodsDoesNotSayThatThereAreNone(t *testing.T) {
	nodes, err := nodesOf(strings.NewReader(`{kind: Node, metadata: {name: gpu-0}, status: {allocatable: {nvidia.com/gpu: "8"}}}`))
	if err != nil || nodes[0].Pods != nil {
		t.Errorf("%v, %v", nodes, err)
	}
}

// nodesOf reads the nodes of one file.
func nodesOf(in io.Reader) ([]sharing.NodeObject, error) {
	var set NodeSet
	err := set.Read(in)
	return set.Nodes(), err
}

// What a pod holds that cannot be read nobody knows: its node's GPUs are neither free nor taken.
func TestAPodThatCannotBeReadLeavesOpenWhatIsFreeOnItsNodeAlone(t *testing.T) {
	const nodes = "kind: NodeList\nitems: [{kind: Node, metadata: {name: a}}, {kind: Node, metadata: {name: b}}]\n---\n"
	for name, c := range map[string]struct{ spec, note string }{
		"an amount": {"{nodeName: a, containers: [{name: c, resources: {limits: {nvidia.com/gpu: one}}}]}",
			`reading pod ml/p: spec.containers[0].resources.limits["nvidia.com/gpu"] is "one": want a Kubernetes quantity of 0 or more; what is free on its node is unknown`},
		"a field": {"{nodeName: a, containers: all}", "reading pod ml/p: "},
	} {
		t.Run(name, func(t *testing.T) {
			var set NodeSet
			err := set.Read(strings.NewReader(nodes + "kind: Pod\nmetadata: {name: q, namespace: ml}\nspec: {nodeName: b}\n---\nkind: Pod\nmetadata: {name: p, namespace: ml}\nspec: " + c.spec))
			read := set.Nodes()
			if err != nil || len(read) != 2 || read[0].Pods != nil || read[1].Pods == nil {
				t.Fatalf("%v, %t %t, notes %q", err, read[0].Pods == nil, read[1].Pods == nil, set.Notes)
			}
			if len(set.Notes) != 1 || !strings.HasPrefix(set.Notes[0], c.note) {
				t.Errorf("notes %q, want %q", set.Notes, c.note)
			}
		})
	}
}

func TestTheStatusShowsWhenItWasWritten(t *testing.T) {
	tests := []struct{ name, annotation, status, want string }{
		{"the annotation", "2024-05-02 10:00:00.5 +0000 UTC", statusOf130, "2024-05-02T10:00:00Z"},
		{"no annotation", "", statusOf130, ""},
		{"no time that can be read", "yesterday", statusOf130, ""},
	}
	for _, test := range tests {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{StatusUpdated: test.annotation}}, Data: map[string]string{"status": test.status}}
		got, err := StatusTime(config)
		if text := got.Format(time.RFC3339); (err != nil) != (test.want == "") || err == nil && text != test.want {
			t.Errorf("%s: %s, %v; want %q", test.name, text, err, test.want)
		}
	}
}

const amdSlice = `
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {feature.node.kubernetes.io/amd-gpu: "true"}}
status: {allocatable: {cpu: "8"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s1}
spec:
  driver: gpu.amd.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0-128
    attributes: {type: {string: TYPE}, productName: {string: AMD_Instinct_MI300X_OAM}, PARENT: {string: "0003:00:00.0"}}
    capacity: {memory: {value: 98296Mi}}
  - name: gpu-1-129
    attributes: {type: {string: TYPE}, productName: {string: AMD_Instinct_MI300X_OAM}, PARENT: {string: "SECOND"}}
    capacity: {memory: {value: 98296Mi}}
`

func TestAMDsDevicesAreCardsOrPartitionsOfThem(t *testing.T) {
	for name, test := range map[string]struct {
		words []string
		want  string
	}{
		"two cards":                  {[]string{"TYPE", "amdgpu", "PARENT", "pciAddr", "SECOND", "0003:00:01.0"}, "2 whole hardware []"},
		"two partitions of one card": {[]string{"TYPE", "amdgpu-partition", "PARENT", "parentPciAddr", "SECOND", "0003:00:00.0"}, "1 unknown unknown []"},
	} {
		var set NodeSet
		must(t, set.Read(strings.NewReader(strings.NewReplacer(test.words...).Replace(amdSlice))))
		read := sharing.Reader{}.Read(set.Nodes()[0])
		if got := fmt.Sprintln(*read.Cards, read.Kind, read.Isolation, read.Problems); strings.TrimSpace(got) != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestPricesAreRead(t *testing.T) {
	got, err := ReadPools(strings.NewReader(`
currency: EUR
pools: [{name: train, price: 27.2}]
instanceTypes:
  p4d.24xlarge: 21
spot: {p4d.24xlarge: 8.5}
`))
	want := landing.Config{Currency: "EUR", Pools: []landing.Spec{{Name: "train", Price: new(27.2)}},
		InstancePrices: map[string]float64{"p4d.24xlarge": 21}, SpotPrices: map[string]float64{"p4d.24xlarge": 8.5}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAnErrorInPricesNamesFieldAndValue(t *testing.T) {
	for text, want := range map[string]string{
		"instanceTypes: {p4d.24xlarge: -1}":     `instanceTypes["p4d.24xlarge"]: -1: want a number from 0 to 1000000000 without quotes`,
		"spot: {x: 2e9}":                        "spot.x: 2000000000: want a number from 0 to 1000000000 without quotes",
		"complete: true\n---\ncurrency: EUR":    "two documents: want one",
		"pools: [{name: a, price: -.inf}]":      "price: -.inf: want a finite number",
		"currency: dollars":                     `currency: "dollars": want a code of ISO 4217, such as USD`,
		`instanceTypes: {p4d.24xlarge: "21.9"}`: `instanceTypes["p4d.24xlarge"]: "21.9": want a number from 0 to 1000000000 without quotes`,
	} {
		if _, err := ReadPools(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

// Two lists of one cluster, such as two files of `kubectl get nodes,pods -A`, have each object twice.
func TestAnObjectThatIsListedTwiceCountsOnce(t *testing.T) {
	const list = `{"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "a"}}, {"kind": "Node", "metadata": {}},
		{"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"nodeName": "a", "containers": [{"resources": {"requests": {"nvidia.com/gpu": "2"}}}]}}]}`
	var set NodeSet
	for range 2 {
		must(t, set.Read(strings.NewReader(list)))
	}
	nodes := set.Nodes()
	if len(nodes) != 3 || len(nodes[0].Pods) != 1 {
		t.Errorf("%d nodes, want a once and two without a name; %d pods on a, want 1", len(nodes), len(nodes[0].Pods))
	}
	if want := []string{"node a is listed more than once; the first counts"}; !cmp.Equal(want, set.Notes) {
		t.Errorf("notes %q, want %q", set.Notes, want)
	}
}
