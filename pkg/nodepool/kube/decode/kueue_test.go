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
	elastic, copied := own, own
	elastic.Elastic = true
	copied.Elastic, copied.Remote = true, true
	const origin = "labels: {kueue.x-k8s.io/queue-name: research, kueue.x-k8s.io/multikueue-origin: multikueue}"
	child := nodepool.Queue{Name: "research",
		Mark:   "label kueue.x-k8s.io/queue-name on RayCluster llm, which RayJob train created",
		Parent: nodepool.Owner{Kind: "RayJob", Name: "train", UID: "j-1"}}
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
		"a copy of MultiKueue":          {origin, []string{gate, gate, gate + "}\n  enableInTreeAutoscaling: false\n#"}, copied},
		"one with in-tree autoscaling":  {origin, []string{gate, gate, gate + "}\n  enableInTreeAutoscaling: true\n#"}, elastic},
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

func TestWhoScalesIsWhoWroteTheWorkerGroupsLastAndIsKeptInTheCache(t *testing.T) {
	const groups = `fieldsV1: {f:spec: {f:workerGroupSpecs: {}}}`
	for _, test := range []struct{ name, entries, want string }{
		{"nobody", `[]`, ""},
		{"whoever made it", `[{manager: kubectl-create, operation: Update, time: "2026-01-01T00:00:00Z", ` + groups + `}]`, "kubectl-create"},
		{"Ray's own autoscaler after that", `[{manager: python-requests, operation: Update, time: "2026-01-01T00:01:00Z", ` + groups + `},
			{manager: kubectl-create, operation: Update, time: "2026-01-01T00:00:00Z", fieldsV1: {f:spec: {f:rayVersion: {}}}}]`, "python-requests"},
		{"an applier that was later than another", `[{manager: platform, operation: Apply, time: "2026-01-01T00:02:00Z", ` + groups + `},
			{manager: heliostat, operation: Update, time: "2026-01-01T00:01:00Z", ` + groups + `}]`, "platform"},
		{"only the status is written", `[{manager: manager, operation: Update, subresource: status, time: "2026-01-01T00:02:00Z", fieldsV1: {f:status: {}}}]`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: objectOf(t, "{metadata: {name: c, managedFields: "+test.entries+"}}")}
			if got := DecodeObject(object).Cluster.ScaledBy; got != test.want {
				t.Errorf("scaled by %q, want %q", got, test.want)
			}
			if _, err := StripRayCluster(object); err != nil {
				t.Fatal(err)
			}
			for _, entry := range object.GetManagedFields() {
				if entry.FieldsV1 != nil {
					t.Errorf("the cache keeps the fields of %s", entry.Manager)
				}
			}
			if got := DecodeObject(object).Cluster.ScaledBy; got != test.want {
				t.Errorf("in the cache scaled by %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhoAppliesTheWorkerGroupsFromElsewhereIsKnownByManagedFields(t *testing.T) {
	const groups = `{f:spec: {f:workerGroupSpecs: {}}}`
	tests := []struct {
		name, entries, want string
	}{
		{"nobody", `[]`, ""},
		{"a person by hand", `[{manager: kubectl-create, operation: Update, fieldsV1: ` + groups + `}, {manager: kubectl-edit, operation: Update, fieldsV1: ` + groups + `}]`, ""},
		{"a person by client-side apply", `[{manager: kubectl-client-side-apply, operation: Update, fieldsV1: ` + groups + `}]`, ""},
		{"we ourselves", `[{manager: heliostat, operation: Update, fieldsV1: ` + groups + `}]`, ""},
		{"the operator's status", `[{manager: manager, operation: Update, subresource: status, fieldsV1: {f:status: {}}}]`, ""},
		{"server-side apply", `[{manager: kubectl, operation: Apply, fieldsV1: ` + groups + `}]`, "kubectl, by server-side apply"},
		{"an applier from whom our patch of replicas took the list", `[{manager: platform, operation: Apply, fieldsV1: {f:spec: {f:rayVersion: {}}}}, {manager: heliostat, operation: Update, fieldsV1: ` + groups + `}]`, "platform, by server-side apply"},
		{"an applier of labels only", `[{manager: labeller, operation: Apply, fieldsV1: {f:metadata: {f:labels: {}}}}]`, ""},
		{"Argo CD's own apply", `[{manager: argocd-controller, operation: Update, fieldsV1: ` + groups + `}]`, "argocd-controller"},
		{"Flux", `[{manager: kustomize-controller, operation: Apply, fieldsV1: ` + groups + `}]`, "kustomize-controller, by server-side apply"},
		{"Helm", `[{manager: Helm, operation: Update, fieldsV1: ` + groups + `}]`, "Helm"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := objectOf(t, "{metadata: {managedFields: "+test.entries+"}}")
			if got := AppliedBy(FieldsOf(object, nil).Object("metadata")); got != test.want {
				t.Errorf("applied by %q, want %q", got, test.want)
			}
		})
	}
}
