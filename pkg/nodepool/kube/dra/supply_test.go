package dra

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}

// gpuClass is the class that stands for nvidia.com/gpu.
const gpuClass = `{metadata: {name: gpu.example.com}, spec: {extendedResourceName: nvidia.com/gpu,
  selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}}`

// cards is a slice of node n1 with cards of these models, as the example driver publishes them.
func cards(models ...string) string {
	var devices []string
	for i, model := range models {
		model, more, _ := strings.Cut(model, " ")
		devices = append(devices, fmt.Sprintf(`{name: gpu-%d, attributes: {model: {string: %s}}, capacity: {memory: {value: 80Gi}}%s}`, i, model, more))
	}
	return `{metadata: {name: s}, spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [` + strings.Join(devices, ", ") + `]}}`
}

func exactly(more string) string {
	return `{metadata: {name: t, namespace: ml}, spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com` + more + `}}]}}}}`
}

// partitions are two cards, each with two halves. The counters are in a slice of their own.
var partitions = []string{
	`{metadata: {name: counters}, spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 2}, sharedCounters: [
  {name: card-0, counters: {half-0: {value: "1"}, half-1: {value: "1"}}}, {name: card-1, counters: {half-0: {value: "1"}, half-1: {value: "1"}}}]}}`,
	`{metadata: {name: devices}, spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 2}, devices: [` +
		part("whole-0", "whole", 0, 0, 1) + part("whole-1", "whole", 1, 0, 1) + part("half-0-0", "half", 0, 0) + part("half-0-1", "half", 0, 1) +
		part("half-1-0", "half", 1, 0) + part("half-1-1", "half", 1, 1) + `]}}`,
}

// together are two cards as drivers publish them for Kubernetes 1.34: counters and devices of each card in one slice.
var together = []string{cardOf(0), cardOf(1)}

func cardOf(card int) string {
	return fmt.Sprintf(`{metadata: {name: card-%d}, spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 2}, sharedCounters: [
  {name: card-%d, counters: {half-0: {value: "1"}, half-1: {value: "1"}}}], devices: [`, card, card) +
		part(fmt.Sprintf("half-%d-0", card), "half", card, 0) + part(fmt.Sprintf("half-%d-1", card), "half", card, 1) + `]}}`
}

func part(name, model string, card int, halves ...int) string {
	var counters []string
	for _, half := range halves {
		counters = append(counters, fmt.Sprintf(`half-%d: {value: "1"}`, half))
	}
	return fmt.Sprintf(`{name: %s, attributes: {model: {string: %s}}, consumesCounters: [{counterSet: card-%d, counters: {%s}}]}, `, name, model, card, strings.Join(counters, ", "))
}

const template = "resourceclaimtemplates.resource.k8s.io/ml.t"

func TestUnitsAreWhatTheSchedulersAllocatorFinds(t *testing.T) {
	halves := exactly(`, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].model == 'half'"}}]`)
	for name, test := range map[string]struct {
		slices   []string
		template string
		taken    []string
		resource string
		want     Units
		open     bool
	}{
		"an extended resource has a unit for each device of its class": {
			slices: []string{cards("a100", "a100", "l4")}, resource: "nvidia.com/gpu", want: Units{3, 3, 3, ""}},
		"the name of a class has the same units": {
			slices: []string{cards("a100", "l4")}, resource: "deviceclass.resource.kubernetes.io/gpu.example.com", want: Units{2, 2, 2, ""}},
		"devices of claims are not free": {
			slices: []string{cards("a100", "a100", "l4")}, taken: []string{"gpu-1"}, resource: "nvidia.com/gpu", want: Units{3, 3, 2, ""}},
		"a tainted device has no room": {
			slices: []string{cards("a100", "a100 , taints: [{key: bad, effect: NoSchedule}]")}, resource: "nvidia.com/gpu", want: Units{2, 1, 1, ""}},
		"a tainted device has room for a claim that tolerates it": {
			slices:   []string{cards("a100", "a100 , taints: [{key: bad, effect: NoSchedule}]")},
			template: exactly(`, tolerations: [{key: bad, operator: Exists}]`), resource: template, want: Units{2, 2, 2, ""}},
		"a claim for devices of a class takes units of the class": {
			slices: []string{cards("a100", "a100", "a100", "a100", "a100")}, template: exactly(`, allocationMode: ExactCount, count: 2`),
			taken: []string{"gpu-4"}, resource: gpuinfo.ClassPrefix + "gpu.example.com", want: Units{5, 5, 4, ""}},
		"a selector chooses devices": {
			slices:   []string{cards("a100", "a100", "l4")},
			template: exactly(`, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].model == 'l4'"}}]`), resource: template, want: Units{1, 1, 1, ""}},
		"a claim for all devices needs all of them": {
			slices: []string{cards("a100", "a100")}, template: exactly(`, allocationMode: All`), taken: []string{"gpu-0"}, resource: template, want: Units{1, 1, 0, ""}},
		"the first of alternatives that is there counts": {
			slices: []string{cards("a100", "l4", "l4")},
			template: `{metadata: {name: t, namespace: ml}, spec: {spec: {devices: {requests: [{name: gpu, firstAvailable: [
  {name: one, deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].model == 'a100'"}}]},
  {name: two, deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 2}]}]}}}}`,
			resource: template, want: Units{2, 2, 2, ""}},
		"parts of cards share their counters": {
			slices: partitions, template: halves, resource: template, want: Units{4, 4, 4, ""}},
		"parts of cards share counters that are in the slice of the devices": {
			slices: together, template: halves, resource: template, taken: []string{"half-1-0"}, want: Units{4, 4, 3, ""}},
		"and their pool lacks a slice as any other": {
			slices: together[:1], template: halves, resource: template, open: true},
		"a part leaves room for the rest of its card and no whole one": {
			slices: partitions, template: exactly(`, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].model == 'whole'"}}]`),
			taken: []string{"half-1-0"}, resource: template, want: Units{2, 2, 1, ""}},
		"a pool that lacks a slice has no devices yet": {
			slices: partitions[1:], template: halves, resource: template, open: true},
		"and neither has one with a slice of a new generation": {
			slices:   []string{cards("a100", "a100"), strings.NewReplacer("name: s}", "name: new}", "generation: 1, resourceSliceCount: 1", "generation: 2, resourceSliceCount: 2").Replace(cards("l4"))},
			resource: "nvidia.com/gpu", open: true},
		"a slice of a new generation replaces others": {
			slices:   []string{cards("a100", "a100"), strings.NewReplacer("name: s}", "name: new}", "generation: 1", "generation: 2").Replace(cards("l4"))},
			resource: "nvidia.com/gpu", want: Units{1, 1, 1, ""}},
		"a claim with a selector that is no CEL is never had": {
			slices: []string{cards("a100")}, template: exactly(`, selectors: [{cel: {expression: "model is l4"}}]`), resource: template},
	} {
		var objects Objects
		objects.Put(read[resourcev1.DeviceClass](t, gpuClass))
		for _, slice := range test.slices {
			objects.Put(read[resourcev1.ResourceSlice](t, slice))
		}
		if test.template != "" {
			objects.Put(read[resourcev1.ResourceClaimTemplate](t, test.template))
		}
		for _, device := range test.taken {
			objects.Put(read[resourcev1.ResourceClaim](t, `{metadata: {name: `+device+`, namespace: other}, status: {allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, pool: n1, device: `+device+`}]}}}}`))
		}
		for range 2 { // the second answer is a kept one
			nodes, others := objects.ByNode()
			if got := nodes["n1"].Units[test.resource]; got != test.want || (nodes["n1"].Open != nil) != test.open || others.Open != nil || len(others.Units) > 0 {
				t.Errorf("%s: %+v of %+v, want %+v", name, got, nodes["n1"], test.want)
			}
		}
	}
}

func TestWithoutProofMoreMayBeSupplied(t *testing.T) {
	nvidia := strings.NewReplacer("gpu.example.com", "gpu.nvidia.com", "attributes: {", "attributes: {type: {string: gpu}, ").Replace(cards("a100", "l4"))
	for name, test := range map[string]struct {
		class, slice string
		open         bool
		units        int64
	}{
		"DeviceClasses are unknown, and the class of NVIDIA's chart counts": {"", nvidia, true, 2},
		"ResourceSlices are unknown":                                        {gpuClass, "", true, 0},
		"a slice is not of one node":                                        {gpuClass, strings.Replace(cards("a100"), "nodeName: n1", "allNodes: true", 1), true, 0},
		"all that may supply something is known":                            {gpuClass, cards("a100"), false, 1},
		"a class without selectors has all devices":                         {`{metadata: {name: any}, spec: {extendedResourceName: nvidia.com/gpu}}`, nvidia, false, 2},
	} {
		var objects Objects
		if test.class != "" {
			objects.Put(read[resourcev1.DeviceClass](t, test.class))
		}
		if test.slice != "" {
			objects.Put(read[resourcev1.ResourceSlice](t, test.slice))
		}
		nodes, others := objects.ByNode()
		if units := nodes["n1"].Units["nvidia.com/gpu"].All; units != test.units || (others.Open != nil) != test.open {
			t.Errorf("%s: %d units, others %+v, want %d and open %v", name, units, others, test.units, test.open)
		}
	}
}

func TestANodeHasWhatIsSuppliedUnlessItAnnouncesIt(t *testing.T) {
	supply := Supply{Units: map[string]Units{"nvidia.com/gpu": {4, 3, 1, ""}}}
	for name, test := range map[string]struct {
		announced, pods int64
		usable, used    int64
	}{
		"devices alone, in claims of others too":      {0, 1, 3, 2},
		"a pod is known before its claim":             {0, 3, 3, 3},
		"a device plugin, for which no claim is made": {8, 5, 8, 5},
		"a device plugin that announces 0 has no say": {0, 0, 3, 2},
	} {
		node := landing.Node{Name: "n1", Allocatable: landing.Quantities{}, Use: &landing.Use{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(test.pods)}}}
		if test.announced > 0 {
			node.Allocatable["nvidia.com/gpu"] = raydemand.Whole(test.announced)
		}
		supply.AddTo(&node)
		if usable, used := node.Usable("nvidia.com/gpu"), node.Use.Requests["nvidia.com/gpu"]; usable != raydemand.Whole(test.usable) || used != raydemand.Whole(test.used) {
			t.Errorf("%s: usable %v, used %v, want %d and %d", name, usable, used, test.usable, test.used)
		}
	}
}

// The API server refuses a negative generation, and a file may have one.
func TestANegativeGenerationOfAPoolIsItsNewest(t *testing.T) {
	var slice resourcev1.ResourceSlice
	slice.Spec.Pool.Generation, slice.Spec.Pool.ResourceSliceCount = -1, 1
	if newest, complete := newestOf([]*resourcev1.ResourceSlice{&slice}); len(newest) != 1 || !complete {
		t.Errorf("%d slices, complete: %v", len(newest), complete)
	}
}

func TestAClaimSaysWhichClassDoesNotExist(t *testing.T) {
	var objects Objects
	objects.Put(read[resourcev1.ResourceClaimTemplate](t, exactly("")))
	objects.Put(read[resourcev1.ResourceClaimTemplate](t, `{metadata: {name: first, namespace: ml}, spec: {spec: {devices: {requests: [{name: gpu,
  firstAvailable: [{name: a, deviceClassName: gpu.example.com}, {name: b, deviceClassName: mig.example.com}]}]}}}}`))
	absent := func() string {
		pod := landing.PodShape{Requests: landing.Quantities{"cpu": 1}, ClaimTemplates: []string{"t", "first"}}
		objects.Claims().AddTo("ml", &pod)
		return fmt.Sprint(pod.AbsentClasses)
	}
	if got := absent(); got != "map[]" {
		t.Errorf("while DeviceClasses are unknown, %s is absent", got)
	}
	objects.Put(read[resourcev1.DeviceClass](t, gpuClass))
	if got, want := absent(), "map["+gpuinfo.ClaimPrefix+"ml.first:mig.example.com]"; got != want {
		t.Errorf("absent are %s, want %s", got, want)
	}
}

func TestClaimsOfKnownTemplatesAreRequests(t *testing.T) {
	const class = gpuinfo.ClassPrefix + "gpu.example.com"
	var objects Objects
	objects.Put(read[resourcev1.DeviceClass](t, gpuClass))
	a100 := exactly(`, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].model == 'a100'"}}]`)
	named := func(name, text string) string { return strings.Replace(text, "name: t,", "name: "+name+",", 1) }
	for _, text := range []string{
		a100, named("same", strings.Replace(a100, "name: gpu,", "name: other,", 1)),
		named("three", strings.Replace(a100, "gpu.example.com,", "gpu.example.com, count: 3,", 1)),
		named("two", exactly(`, count: 2`)), named("all", exactly(`, allocationMode: All`)),
	} {
		objects.Put(read[resourcev1.ResourceClaimTemplate](t, text))
	}
	// a100 is the name of the first of the equal claims.
	const a100Name = gpuinfo.ClaimPrefix + "ml.same"
	for name, test := range map[string]struct {
		namespace string
		templates []string
		byName    raydemand.Amount
		requests  landing.Quantities
		seen      string
	}{
		"no claim":                        {"ml", nil, 0, landing.Quantities{"cpu": 1}, ""},
		"two claims of one template":      {"ml", []string{"t", "t"}, 0, landing.Quantities{"cpu": 1, a100Name: raydemand.Whole(2)}, ""},
		"equal claims of two templates":   {"ml", []string{"t", "same"}, 0, landing.Quantities{"cpu": 1, a100Name: raydemand.Whole(2)}, ""},
		"a claim for three is three":      {"ml", []string{"three", "t"}, 0, landing.Quantities{"cpu": 1, a100Name: raydemand.Whole(4)}, ""},
		"a claim for all is its own":      {"ml", []string{"all"}, 0, landing.Quantities{"cpu": 1, gpuinfo.ClaimPrefix + "ml.all": raydemand.One}, ""},
		"a template of another namespace": {"other", []string{"t"}, 0, landing.Quantities{"cpu": 1}, "ResourceClaimTemplate t"},
		"a claim that all pods share":     {"ml", []string{"t", ""}, 0, landing.Quantities{"cpu": 1, a100Name: raydemand.One}, "a claim that all pods share"},
		"one by name and two by a claim, which the node adds up": {"ml", []string{"two"}, raydemand.One,
			landing.Quantities{"cpu": 1, "nvidia.com/gpu": raydemand.One, class: raydemand.Whole(2)}, ""},
		"a name without claims of its class stays as it is": {"ml", []string{"t"}, raydemand.One,
			landing.Quantities{"cpu": 1, "nvidia.com/gpu": raydemand.One, a100Name: raydemand.One}, ""},
	} {
		shared := landing.Quantities{"cpu": 1}
		if test.byName > 0 {
			shared["nvidia.com/gpu"] = test.byName
		}
		before := len(shared)
		cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: test.namespace, Name: "ray"}, Groups: []nodepool.WorkerGroup{
			{Index: 2, Pod: landing.PodShape{Requests: shared, ClaimTemplates: test.templates}}}}
		var finding raydemand.Finding
		for _, finding = range objects.Claims().AddToGroups(&cluster) {
			if finding.Field != "spec.workerGroupSpecs[2].template.spec.resourceClaims" || finding.Object != "RayCluster "+test.namespace+"/ray" {
				t.Errorf("%s: %+v", name, finding)
			}
		}
		if diff := cmp.Diff(test.requests, cluster.Groups[0].Pod.Requests); diff != "" || finding.Seen != test.seen {
			t.Errorf("%s: seen %q, want %q; requests (-want +got):\n%s", name, finding.Seen, test.seen, diff)
		}
		if len(shared) != before {
			t.Errorf("%s: the shape that all copies share has changed: %v", name, shared)
		}
	}
}

// split are slices of one pool of two nodes, whose devices name their nodes.
func split(more ...string) []string {
	list := []string{}
	for i, node := range []string{"n1", "n2"} {
		list = append(list, fmt.Sprintf(`{metadata: {name: %s}, spec: {driver: gpu.example.com, perDeviceNodeSelection: true, pool: {name: all, generation: 1, resourceSliceCount: 2}, devices: [
  {name: gpu-%d, nodeName: %s, attributes: {model: {string: a100}}%s}]}}`, node, i, node, strings.Join(more, "")))
	}
	return list
}

// matched is a claim for cards of one model.
func matched(count int) string {
	text := exactly(fmt.Sprint(`, count: `, count))
	return text[:len(text)-len("}}}}")] + `, constraints: [{matchAttribute: gpu.example.com/model}]}}}}`
}

func TestWhatDoesNotBoundIsNotAbsent(t *testing.T) {
	eight := cards(slices.Repeat([]string{"a100"}, 12)...)
	for name, test := range map[string]struct {
		slices          []string
		claims          []string
		template, class string
		resource        string
		want            Units
		open            bool
	}{
		"a search for devices that does not end": {slices: []string{cards(slices.Repeat([]string{"a100", "l4"}, 10)...)},
			template: matched(11), resource: template, open: true},
		"and what it found before": {slices: []string{cards(slices.Repeat([]string{"a100", "l4"}, 18)...)},
			template: matched(10), resource: template, want: Units{2, 2, 2, tooMuchWork}, open: true},
		"more devices than there are, with a constraint": {slices: []string{eight}, template: matched(13), resource: template},
		"more devices than there are, without a search": {slices: []string{eight}, template: exactly(`, count: 13`),
			resource: gpuinfo.ClassPrefix + "gpu.example.com", want: Units{12, 12, 12, ""}},
		"admin access takes no device": {slices: []string{eight}, template: exactly(`, adminAccess: true`),
			resource: template, want: Units{unbounded, unbounded, unbounded, ""}},
		"an empty claim takes no device": {slices: []string{eight}, template: `{metadata: {name: t, namespace: ml}}`,
			resource: template, want: Units{unbounded, unbounded, unbounded, ""}},
		"a pool over slices of several nodes is complete": {slices: split(), resource: "nvidia.com/gpu", want: Units{1, 1, 1, ""}},
		"a device with binding conditions": {slices: split(`, bindsToNode: true, bindingConditions: [ready], bindingFailureConditions: [failed]`),
			resource: "nvidia.com/gpu", want: Units{1, 1, 1, ""}},
		"a device that claims share by its capacity": {
			slices:   []string{cards("a100 , allowMultipleAllocations: true")},
			template: exactly(`, capacity: {requests: {memory: 20Gi}}`),
			claims:   []string{`shareID: 00000000-0000-0000-0000-000000000001, consumedCapacity: {memory: 40Gi}`},
			resource: template, want: Units{4, 4, 2, ""}},
		"a device that claims share without a capacity": {
			slices:   []string{strings.Replace(cards("a100 , allowMultipleAllocations: true"), "capacity: {memory: {value: 80Gi}}", "capacity: {}", 1)},
			template: exactly(``), resource: "nvidia.com/gpu", want: Units{unbounded, unbounded, unbounded, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects Objects
			objects.Put(read[resourcev1.DeviceClass](t, gpuClass))
			for _, slice := range test.slices {
				objects.Put(read[resourcev1.ResourceSlice](t, slice))
			}
			if test.template != "" {
				objects.Put(read[resourcev1.ResourceClaimTemplate](t, test.template))
			}
			for _, share := range test.claims {
				objects.Put(read[resourcev1.ResourceClaim](t, `{metadata: {name: c, namespace: other}, status: {allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, pool: n1, device: gpu-0, `+share+`}]}}}}`))
			}
			for range 2 { // the second answer is a kept one
				nodes, others := objects.ByNode()
				if got := nodes["n1"]; got.Units[test.resource] != test.want || (got.Open != nil) != test.open || others.Open != nil {
					t.Errorf("%+v, open %v; others open %v; want %+v, open %v", got.Units, got.Open, others.Open, test.want, test.open)
				}
			}
		})
	}
}
