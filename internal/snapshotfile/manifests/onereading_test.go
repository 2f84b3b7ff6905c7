package manifests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// offering returns a ResourceSlice of a driver with these devices, each with its attributes.
func offering(driver, at string, devices ...string) string {
	for i, device := range devices {
		devices[i] = fmt.Sprintf(`{name: gpu-%d, %s, capacity: {memory: {value: 4864Mi}}}`, i, device)
	}
	return fmt.Sprintf(`{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: %s, %s, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [%s]}}`,
		driver, at, strings.Join(devices, ", "))
}

func TestNodepoolsDoctorAndPlanReadOneNodeAlike(t *testing.T) {
	const (
		on       = "nodeName: n1"
		instance = `attributes: {type: {string: mig}, parentUUID: {string: GPU-0}, profile: {string: 1g.5gb}, productName: {string: NVIDIA A100-SXM4-40GB}}`
		card     = `attributes: {type: {string: gpu}, productName: {string: NVIDIA A100-SXM4-40GB}}`
		tainted  = card + `, taints: [{key: gpu.nvidia.com/xid, effect: NoSchedule}]`
		other    = `attributes: {model: {string: Flex 170}}`
		labels   = `nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB, nvidia.com/gpu.memory: "40960", nvidia.com/gpu.count: "1"`
		intel    = `intel.feature.node.kubernetes.io/gpu: "true"`
	)
	for name, test := range map[string]struct {
		labels, allocatable, slice, class, want string
	}{
		"instances are instances, although labels describe a card": {
			labels, ``, offering("gpu.nvidia.com", on, instance, instance, instance, instance), "gpu.nvidia.com", "mig NVIDIA-A100-SXM4-40GB, 4 of 4, []"},
		"a node without labels": {
			``, ``, offering("gpu.nvidia.com", on, card, card), "gpu.nvidia.com", "whole NVIDIA A100-SXM4-40GB, 2 of 2, []"},
		"a card with a taint has no room": {
			``, ``, offering("gpu.nvidia.com", on, card, tainted), "gpu.nvidia.com", "whole NVIDIA A100-SXM4-40GB, 1 of 2, [device-unhealthy: the driver taints GPU-1: gpu.nvidia.com/xid]"},
		"what a device plugin announces is its own": {
			labels, `, nvidia.com/gpu: "1"`, offering("gpu.nvidia.com", on, card), "gpu.nvidia.com", "whole NVIDIA-A100-SXM4-40GB, 1 of 1, []"},
		"devices that name their node": {
			``, ``, offering("gpu.nvidia.com", "perDeviceNodeSelection: true", card+", nodeName: n1", card+", nodeName: n2"), "gpu.nvidia.com", "whole NVIDIA A100-SXM4-40GB, 1 of 1, []"},
		"GPUs of a driver whose attributes are not known are supplied": {
			intel, ``, offering("gpu.intel.com", on, other), "gpu.intel.com", "unknown unknown, 1 of 1, []"},
		"devices that are no GPUs supply none": {
			intel, ``, offering("dra.net", on, other), "gpu.intel.com", "unknown unknown, 0 of 0, [nothing-announced: intel.feature.node.kubernetes.io/gpu=true, and no GPU resource is announced]"},
		"a device plugin that the GPU operator did not deploy": {
			`nvidia.com/gpu.deploy.driver: "true"`, `, nvidia.com/gpu: "8"`, offering("dra.net", on, other), "gpu.nvidia.com", "whole (unproven) unknown, 8 of 8, []"},
	} {
		t.Run(name, func(t *testing.T) {
			node := fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {%s}}, status: {allocatable: {cpu: "8", pods: "110"%s}}}`, test.labels, test.allocatable)
			class := fmt.Sprintf(`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}, spec: {extendedResourceName: nvidia.com/gpu, selectors: [{cel: {expression: "device.driver == '%s'"}}]}}`, test.class)
			show := func(gpus sharing.GPUs, fit *landing.Node) string {
				model := "unknown"
				if gpus.Product != nil {
					model = *gpus.Product
				}
				room := ""
				if fit != nil {
					room = fmt.Sprintf(", %v of %v", fit.Usable("nvidia.com/gpu"), fit.Allocatable["nvidia.com/gpu"])
				}
				return fmt.Sprint(gpus.Kind, " ", model, room, ", ", gpus.Problems)
			}
			var set decode.NodeSet
			if err := set.Read(strings.NewReader(node + "\n---\n" + test.slice)); err != nil {
				t.Fatal(err)
			}
			nodepools := show(sharing.Reader{}.Read(set.Nodes()[0]), nil)

			var objects []map[string]any
			for _, text := range []string{node, test.slice, class} {
				var object map[string]any
				if err := yaml.Unmarshal([]byte(text), &object); err != nil {
					t.Fatal(err)
				}
				objects = append(objects, object)
			}
			input, err := doctor.Read(objects, sharing.Reader{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			examined := input.Objects[0].Node.Fit
			examines := show(*examined.GPUs, &examined)

			list := func(i int) json.RawMessage {
				text, err := json.Marshal(objects[i : i+1])
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			placed, err := placesOf(sharing.Reader{}, snapshotfile.Document{
				KubeNodes: list(0), KubeResourceSlices: list(1), KubeDeviceClasses: list(2),
			})
			if err != nil {
				t.Fatal(err)
			}
			plan := show(*placed.nodes[0].GPUs, &placed.nodes[0])
			if without := show(*examined.GPUs, nil); examines != test.want || plan != test.want || nodepools != without {
				t.Errorf("nodepools %s\ndoctor    %s\nplan      %s\nwant      %s", nodepools, examines, plan, test.want)
			}
		})
	}
}
