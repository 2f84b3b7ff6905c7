package dra

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// asking is a kind of pods by the names of what they request: nvidia.com/gpu, or templates.
type asking []string

// placed puts as many pods of each kind on nodes as fit, one kind after the other, and says how many these are.
func placed(o *Objects, labels map[string]map[string]string, announced landing.Quantities, kinds ...asking) string {
	supplies, others := o.ByNode()
	var nodes []landing.Node
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		node := landing.Node{Name: name, Pool: "p", Labels: labels[name], Ready: true,
			Allocatable: landing.Quantities{"cpu": raydemand.Whole(100)}.Plus(announced),
			Use:         &landing.Use{Requests: landing.Quantities{}}}
		supply, known := supplies[name]
		if !known {
			supply = others
		}
		supply.AddTo(&node)
		nodes = append(nodes, node)
	}
	none := []landing.Ceiling{{Group: "p", MaxNodes: new(int64)}}
	stock := landing.NodesOf(nodes, landing.Pools{Rooms: landing.Rooms(nodes, landing.Config{}, none)})
	var list []landing.Kind
	for i, names := range kinds {
		shape := &landing.PodShape{Requests: landing.Quantities{"cpu": raydemand.One}}
		for _, name := range names {
			if strings.Contains(name, "/") {
				shape.Requests[name] = shape.Requests[name].Plus(raydemand.One)
			} else {
				shape.ClaimTemplates = append(shape.ClaimTemplates, name)
			}
		}
		o.Claims().AddTo("ml", shape)
		list = append(list, stock.KindOf(fmt.Sprint("kind ", i), shape))
	}
	places, pods := stock.Places(list)
	taken, text := landing.New(pods, places).Empty(), ""
	for i := range kinds {
		room := taken.Room(i)
		if n := taken.Take(i, 1000); n != room {
			text += fmt.Sprintf("(room for %d) %d ", room, n)
		} else {
			text += fmt.Sprint(n, " ")
		}
	}
	return strings.TrimSpace(text)
}

func named(name, text string) string { return strings.Replace(text, "name: t,", "name: "+name+",", 1) }

func model(name string) string {
	return fmt.Sprintf(`, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].model == '%s'"}}]`, name)
}

// known returns objects with the class, these slices, and templates of one, two and all cards, and of models.
func known(t *testing.T, slices ...string) *Objects {
	t.Helper()
	o := &Objects{}
	o.Put(read[resourcev1.DeviceClass](t, gpuClass))
	for _, slice := range slices {
		o.Put(read[resourcev1.ResourceSlice](t, slice))
	}
	for name, text := range map[string]string{
		"one": exactly(""), "two": exactly(", count: 2"), "all": exactly(", allocationMode: All"),
		"a100": exactly(model("a100")), "l4": exactly(model("l4")), "h100": exactly(model("h100")),
		"whole": exactly(model("whole")), "half": exactly(model("half")), "pair": strings.Replace(matched(2), "name: gpu,", "name: pair,", 1),
		"admin": exactly(", adminAccess: true"), "bad": exactly(`, selectors: [{cel: {expression: "model is l4"}}]`),
		"tolerant": exactly(`, tolerations: [{key: bad, operator: Exists}]`),
		"memory":   exactly(`, capacity: {requests: {memory: 20Gi}}`), "missing": strings.Replace(exactly(""), "deviceClassName: gpu.example.com", "deviceClassName: none", 1),
		"fallback": firstAvailable("a100", 1, "l4", 2, "h100", 3, "b1", 4, "b2", 5, "b3", 6, "b4", 7, "b5", 8),
	} {
		template := read[resourcev1.ResourceClaimTemplate](t, named(name, text))
		if err := Check(template); err != nil {
			t.Fatal(err)
		}
		o.Put(template)
	}
	return o
}

// firstAvailable is a claim for so many cards of the first model, or so many of the next.
func firstAvailable(alternatives ...any) string {
	var list []string
	for i := 0; i < len(alternatives); i += 2 {
		list = append(list, fmt.Sprintf(`{name: r%d, deviceClassName: gpu.example.com, count: %d%s}`, i, alternatives[i+1], model(alternatives[i].(string))))
	}
	return `{metadata: {name: t, namespace: ml}, spec: {spec: {devices: {requests: [{name: gpu, firstAvailable: [` + strings.Join(list, ", ") + `]}]}}}}`
}

func held(t *testing.T, o *Objects, device string) {
	t.Helper()
	o.Put(read[resourcev1.ResourceClaim](t, `{metadata: {name: `+device+`, namespace: other}, status: {allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, pool: n1, device: `+device+`}]}}}}`))
}

var node1 = map[string]map[string]string{"n1": {"pool": "p"}}

func TestGroupsThatGetTheSameDevicesDrawOnOneCount(t *testing.T) {
	const byName, implicit = "nvidia.com/gpu", "deviceclass.resource.kubernetes.io/gpu.example.com"
	eight := cards("a100", "a100", "a100", "a100", "l4", "l4", "l4", "l4")
	for name, test := range map[string]struct {
		slices    []string
		held      []string
		announced landing.Quantities
		kinds     []asking
		want      string
	}{
		"by name, and by a claim":                       {slices: []string{eight}, kinds: []asking{{byName}, {"one"}}, want: "8 0"},
		"by a claim, and by the other name":             {slices: []string{eight}, kinds: []asking{{"two"}, {implicit}}, want: "4 0"},
		"both in one pod":                               {slices: []string{eight}, kinds: []asking{{byName, "two"}, {"one"}}, want: "2 2"},
		"a model, and any":                              {slices: []string{eight}, kinds: []asking{{"a100"}, {"one"}}, want: "4 4"},
		"any, and two models":                           {slices: []string{eight}, held: []string{"gpu-0"}, kinds: []asking{{"a100"}, {"l4"}, {byName}}, want: "3 4 0"},
		"two models and no more":                        {slices: []string{eight}, kinds: []asking{{"a100"}, {"l4"}}, want: "4 4"},
		"claims of two of one model":                    {slices: []string{eight}, kinds: []asking{{"pair"}, {"one"}}, want: "4 0"},
		"a claim for all, and any":                      {slices: []string{eight}, kinds: []asking{{"all"}, {"one"}}, want: "1 0"},
		"any, and then all":                             {slices: []string{eight}, kinds: []asking{{"one"}, {"all"}}, want: "8 0"},
		"alternatives take at least the fewest devices": {slices: []string{eight}, kinds: []asking{{"a100"}, {"fallback"}}, want: "4 4"},
		"a device plugin has units of its own":          {slices: []string{eight}, announced: landing.Quantities{byName: raydemand.Whole(3)}, kinds: []asking{{byName}, {"one"}}, want: "3 8"},
		"whole cards, and halves of them":               {slices: partitions, kinds: []asking{{"whole"}, {"half"}}, want: "2 0"},
		"halves, and then whole cards":                  {slices: partitions, kinds: []asking{{"half"}, {"whole"}}, want: "4 0"},
		"all parts of cards":                            {slices: partitions, kinds: []asking{{"all"}, {"half"}}, want: "0 4"},
		"a half is taken":                               {slices: partitions, held: []string{"half-1-0"}, kinds: []asking{{"whole"}, {"half"}}, want: "1 1"},
		"admin access takes nothing":                    {slices: []string{cards("a100", "l4")}, kinds: []asking{{"one"}, {"admin"}}, want: "2 98"},
		"a taint, and who tolerates it":                 {slices: []string{cards("a100", "a100 , taints: [{key: bad, effect: NoExecute}]")}, kinds: []asking{{"one"}, {"tolerant"}}, want: "1 1"},
		"who tolerates a taint, and who does not":       {slices: []string{cards("a100", "a100 , taints: [{key: bad, effect: NoExecute}]")}, kinds: []asking{{"tolerant"}, {"one"}}, want: "2 0"},
		"a claim that cannot be had takes nothing":      {slices: []string{eight}, kinds: []asking{{"bad"}, {"missing"}, {"one"}}, want: "0 0 8"},
		"shares of a device by its capacity":            {slices: []string{cards("a100 , allowMultipleAllocations: true")}, kinds: []asking{{"memory"}}, want: "4"},
		"more of a capacity than the device has":        {slices: []string{strings.Replace(cards("a100 , allowMultipleAllocations: true"), "80Gi", "10Gi", 1)}, kinds: []asking{{"memory"}}, want: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			o := known(t, test.slices...)
			for _, device := range test.held {
				held(t, o, device)
			}
			for range 2 { // the second answer is a kept one
				if got := placed(o, node1, test.announced, test.kinds...); got != test.want {
					t.Errorf("%s pods, want %s", got, test.want)
				}
			}
			o.Drop(ResourceClaims, types.NamespacedName{Namespace: "other", Name: "gpu-0"})
		})
	}
}

func TestDevicesThatSeveralNodesReachAreNotCounted(t *testing.T) {
	const fabric = `{metadata: {name: fabric}, spec: {driver: gpu.example.com, %s, pool: {name: fabric, generation: 1, resourceSliceCount: 1},
		devices: [{name: f0, attributes: {model: {string: h100}}}]}}`
	const selector = `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [a]}]}]}`
	for _, on := range []string{"allNodes: true", selector, "perDeviceNodeSelection: true"} {
		o := known(t, fmt.Sprintf(fabric, on), cards("a100", "a100"))
		if got := placed(o, node1, nil, asking{"one"}); got != "2" {
			t.Errorf("%s: %s pods, want 2", on, got)
		}
		nodes, others := o.ByNode()
		for _, open := range []map[string]string{nodes["n1"].Open, others.Open} {
			const template = "resourceclaimtemplates.resource.k8s.io/ml."
			if open["nvidia.com/gpu"] == "" || open[template+"h100"] == "" || open[template+"a100"] != "" {
				t.Errorf("%s: open is %v, want the names by which pods ask for such a device", on, open)
			}
		}
	}
}
