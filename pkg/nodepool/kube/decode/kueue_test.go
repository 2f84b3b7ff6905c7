package decode

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
)

const gate = "{spec: {schedulingGates: [{name: kueue.x-k8s.io/topology}, {name: kueue.x-k8s.io/elastic-job}]}}"

// queuedCluster has a head and two groups, with what a test puts into the metadata and the three templates.
func queuedCluster(t *testing.T, metadata string, templates ...string) *unstructured.Unstructured {
	t.Helper()
	for len(templates) < 3 {
		templates = append(templates, "{}")
	}
	return &unstructured.Unstructured{Object: objectOf(t, `
metadata: {namespace: ml, name: llm, uid: u-1, resourceVersion: "8", `+metadata+`}
spec:
  headGroupSpec: {template: `+templates[0]+`}
  workerGroupSpecs:
  - {groupName: cpu, replicas: 2, minReplicas: 0, maxReplicas: 5, template: `+templates[1]+`}
  - {groupName: gpu, replicas: 0, minReplicas: 0, maxReplicas: 5, template: `+templates[2]+`}
`)}
}

func TestARayClusterShowsItsQueue(t *testing.T) {
	const label = "labels: {kueue.x-k8s.io/queue-name: research}"
	const owner = ", ownerReferences: [{apiVersion: ray.io/v1, kind: RayJob, name: train, uid: j-1, controller: true}]"
	const annotation = `, annotations: {kueue.x-k8s.io/elastic-job: "true"}`
	own := nodepool.Queue{Name: "research", Mark: "label kueue.x-k8s.io/queue-name on RayCluster llm"}
	elastic := own
	elastic.Elastic = true
	child := nodepool.Queue{Name: "research",
		Mark:   "label kueue.x-k8s.io/queue-name on RayCluster llm, which RayJob train created",
		Parent: nodepool.Owner{Kind: "RayJob", Name: "train"}, ParentUID: "j-1"}
	for name, c := range map[string]struct {
		metadata  string
		templates []string
		want      nodepool.Queue
	}{
		"no label":                      {"labels: {a: b}", nil, nodepool.Queue{}},
		"an empty label":                {`labels: {kueue.x-k8s.io/queue-name: ""}`, nil, nodepool.Queue{}},
		"the label":                     {label, nil, own},
		"the annotation proves nothing": {label + annotation, nil, own},
		"a gate in every template":      {label, []string{gate, gate, gate}, elastic},
		"no gate at the head":           {label + annotation, []string{"{}", gate, gate}, own},
		"no gate in one group":          {label + annotation, []string{gate, gate, "{}"}, own},
		"another gate": {label, []string{gate, gate,
			"{spec: {schedulingGates: [{name: elastic-job}]}}"}, own},
		"gates without a label": {"labels: {}", []string{gate, gate, gate},
			nodepool.Queue{Elastic: true}},
		"the label that a RayJob passed on": {label + owner, nil, child},
		"templates with Kueue's marks, no one": {"labels: {}",
			[]string{"{metadata: {labels: {kueue.x-k8s.io/podset: head}}}"}, nodepool.Queue{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := DecodeObject(queuedCluster(t, c.metadata, c.templates...)).Cluster
			if diff := cmp.Diff(c.want, got.Queue); diff != "" {
				t.Errorf("queue (-want +got):\n%s", diff)
			}
		})
	}
}
