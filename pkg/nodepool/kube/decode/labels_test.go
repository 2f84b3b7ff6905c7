package decode

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestTheSourcesOfRaysOwnLabelsAreReadFromTheTemplate(t *testing.T) {
	const zone, market = "ray.io/availability-zone", "ray.io/market-type"
	env := func(variables string) string {
		return `template: {spec: {containers: [{name: ray, env: [` + variables + `]}]}}`
	}
	field := func(path string) string {
		return `{name: RAY_NODE_ZONE, valueFrom: {fieldRef: {fieldPath: "` + path + `"}}}`
	}
	for name, c := range map[string]struct {
		group   string
		sources map[string]landing.LabelSource
		labels  map[string]string
	}{
		"nothing":           {env(``), nil, nil},
		"a value":           {env(`{name: RAY_NODE_MARKET_TYPE, value: spot}`), map[string]landing.LabelSource{market: {Value: "spot"}}, nil},
		"an empty value":    {env(`{name: RAY_NODE_MARKET_TYPE, value: ""}`), nil, nil},
		"the node's zone":   {env(field("metadata.labels['topology.kubernetes.io/zone']")), map[string]landing.LabelSource{zone: {NodeLabel: "topology.kubernetes.io/zone"}}, nil},
		"the node's name":   {env(field("spec.nodeName")), map[string]landing.LabelSource{zone: {Unknown: "is the pod's spec.nodeName, which the template does not set"}}, nil},
		"an unset label":    {env(field("metadata.labels['rack']")), map[string]landing.LabelSource{zone: {Unknown: "is the pod's metadata.labels['rack'], which the template does not set"}}, nil},
		"a set label":       {`template: {metadata: {labels: {rack: r1}}, spec: {containers: [{name: ray, env: [` + field("metadata.labels['rack']") + `]}]}}`, map[string]landing.LabelSource{zone: {Value: "r1"}}, nil},
		"a group's label":   {`labels: {rack: r2}, ` + env(field("metadata.labels['rack']")), map[string]landing.LabelSource{zone: {Value: "r2"}}, map[string]string{"rack": "r2"}},
		"an annotation":     {`template: {metadata: {annotations: {rack: r3}}, spec: {containers: [{name: ray, env: [` + field("metadata.annotations['rack']") + `]}]}}`, map[string]landing.LabelSource{zone: {Value: "r3"}}, nil},
		"a Secret":          {env(`{name: RAY_NODE_ZONE, valueFrom: {secretKeyRef: {name: s, key: k}}}`), map[string]landing.LabelSource{zone: {Unknown: "comes from valueFrom, which Heliostat does not read"}}, nil},
		"the command":       {`template: {spec: {containers: [{name: ray, command: ["bash", "-c", "export RAY_NODE_ZONE=$(zone); ulimit -n 65536"]}]}}`, map[string]landing.LabelSource{zone: {Unknown: "is set by the container's command"}}, nil},
		"the override wins": {`labels: {rack: a, tier: b}, ` + env(`{name: RAY_OVERRIDE_LABELS, value: '{"rack": "c"}'}`), nil, map[string]string{"rack": "c", "tier": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _, err := DecodeManifest(sharing.Reader{}, []byte(`
metadata: {namespace: ml, name: llm}
spec: {headGroupSpec: {template: {spec: {containers: [{name: ray}]}}}, workerGroupSpecs: [{groupName: g, maxReplicas: 5, `+c.group+`}]}`))
			if err != nil {
				t.Fatal(err)
			}
			got := cluster.Groups[0]
			if diff := cmp.Diff(c.sources, got.LabelSources); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.labels, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}
