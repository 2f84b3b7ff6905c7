package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestListsDocumentsAndJSONAreReadAlike(t *testing.T) {
	const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ml"}}`
	for name, text := range map[string]string{
		"JSON":                         pod + pod,
		"a List":                       `{"kind": "List", "apiVersion": "v1", "items": [` + pod + `,` + pod + `]}`,
		"a List of a PodList":          `{"kind": "List", "items": [{"kind": "PodList", "items": [` + pod + `]}, ` + pod + `]}`,
		"documents, one of them empty": "kind: Pod\nmetadata: {name: a}\n---\n# nothing\n---\nkind: Pod\nmetadata:\n  name: b\n",
	} {
		t.Run(name, func(t *testing.T) {
			objects, _, err := decode.ReadObjects(strings.NewReader(text))
			if err != nil || len(objects) != 2 || objects[0]["kind"] != "Pod" || objects[1]["kind"] != "Pod" {
				t.Errorf("got %v, %v", objects, err)
			}
		})
	}
}

// The buffers of the YAML readers have 4096 bytes.
func TestALastLineOfAnyLengthWithoutANewlineIsRead(t *testing.T) {
	for _, length := range []int{4095, 4096, 4097, 8192} {
		for _, text := range []string{"{kind: Pod, metadata: {name: a}}", "kind: Pod", "kind: Node\n---\n{kind: Pod}"} {
			last := len(text) - strings.LastIndexByte(text, '\n') - 1
			text += strings.Repeat(" ", length-last-2) + "#a"
			objects, _, err := decode.ReadObjects(strings.NewReader(text))
			if err != nil || len(objects) == 0 || objects[len(objects)-1]["kind"] != "Pod" {
				t.Errorf("%.20s… with a line of %d bytes: got %v, %v", text, length, objects, err)
			}
		}
	}
}

func TestBadInputNamesDocumentObjectFieldAndValue(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no kind":                        {"kind: Pod\nmetadata: {name: a}\n---\nmetadata: {name: b}\n", "document 2: kind is missing"},
		"kind of another type":           {"kind: 7\n", "kind is 7: want a name such as RayCluster"},
		"kind a list":                    {"kind: [{a: null}]\n", `kind is [{"a":null}]: want a name such as RayCluster`},
		"text instead of an object":      {"- a\n- b\n", "document 1"},
		"not YAML":                       {"a: [b", "document 1"},
		"items of another type":          {"kind: List\nitems: 3\n", "items is 3: want a list"},
		"an item of another type":        {"kind: List\nitems: [null]\n", "items[0] is null: want an object"},
		"an item without kind":           {"kind: List\nitems: [{}]\n", "items[0]: kind is missing"},
		"a name that is a number":        {"kind: PodDisruptionBudget\nmetadata: {name: 5}\n", "PodDisruptionBudget: metadata.name is 5: want a string"},
		"a namespace that is a list":     {"kind: Pod\nmetadata: {name: a, namespace: [b]}\n", "Pod: metadata.namespace is [\"b\"]: want a string"},
		"metadata that is a number":      {"kind: Pod\nmetadata: 3\n", "Pod: metadata is 3: want an object with the name"},
		"no name":                        {"kind: Pod\n", "Pod: metadata.name is missing"},
		"a RayCluster without spec":      {"apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a}\n", "RayCluster/a: spec is missing"},
		"a RayService with spec a word":  {"apiVersion: ray.io/v1\nkind: RayService\nmetadata: {name: a}\nspec: {rayClusterConfig: big}\n", `spec.rayClusterConfig is "big"`},
		"a node with capacity a word":    {"kind: Node\nmetadata: {name: a}\nstatus: {capacity: many}\n", "Node/a: reading node"},
		"a node with taints of a number": {"kind: Node\nmetadata: {name: a}\nspec: {taints: 3}\n", "Node/a: reading node"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, _, err := decode.ReadObjects(strings.NewReader(c.text))
			if err == nil {
				_, err = doctor.Read(objects, sharing.Reader{}, nil)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestNumbersOfManifestsStayWhole(t *testing.T) {
	objects := parsed(t, "kind: Pod\nmetadata: {name: a, generation: 9007199254740993}\n")
	if got := objects[0]["metadata"].(map[string]any)["generation"]; got != int64(9007199254740993) {
		t.Errorf("got %v", got)
	}
}

func TestANodeWithoutConditionsCountsAsReady(t *testing.T) {
	for status, want := range map[string]bool{
		`{}`: true,
		`{"conditions": [{"type": "Ready", "status": "False"}]}`:   false,
		`{"conditions": [{"type": "Ready", "status": "Unknown"}]}`: false,
		`{"conditions": [{"type": "Ready", "status": "True"}]}`:    true,
	} {
		objects := parsed(t, `{"kind": "Node", "metadata": {"name": "a"}, "status": `+status+`}`)
		input, err := doctor.Read(objects, sharing.Reader{}, nil)
		if err != nil || input.Objects[0].Node.Fit.Ready != want {
			t.Errorf("%s: %+v, %v", status, input.Objects[0].Node, err)
		}
	}
}

// A RayJob that selects an existing RayCluster has no spec of one.
func TestARayJobThatSelectsAClusterIsKept(t *testing.T) {
	objects := parsed(t, "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a}\nspec: {clusterSelector: {ray.io/cluster: llm}}\n")
	input, err := doctor.Read(objects, sharing.Reader{}, nil)
	if err != nil || len(input.Objects) != 1 || input.Objects[0].Cluster != nil {
		t.Errorf("got %+v, %v", input, err)
	}
}

// Every file gives findings or an error with a message, and never a panic.
func FuzzManifests(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.yaml", "../../pkg/nodepool/kube/decode/testdata/nodes/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) < 40 {
			f.Fatalf("found %d files of %s, %v", len(paths), pattern, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			must(f, err)
			f.Add(text)
		}
	}
	f.Add([]byte(`{"kind":"List","items":[{"kind":"RayCluster","apiVersion":"ray.io/v1","metadata":"llm","spec":{"workerGroupSpecs":[null,{"groupName":3}]}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, _, err := decode.ReadObjects(strings.NewReader(string(text)))
		if err == nil {
			var input doctor.Input
			if input, err = doctor.Read(objects, sharing.Reader{}, nil); err == nil {
				for _, finding := range doctor.Examine(input) {
					if finding.Code == "" || finding.Object == "" || finding.Fix == "" || finding.Docs == "" {
						t.Errorf("got %+v", finding)
					}
				}
				return
			}
		}
		if err.Error() == "" {
			t.Error("an error without a message")
		}
	})
}

// One wrong word in one object must not hide all others.
func TestAnUnreadablePodOrCeilingIsReportedAndTheRestIsRead(t *testing.T) {
	const pod = "kind: Pod\nmetadata: {name: a, namespace: ml, labels: {ray.io/cluster: llm}}\n"
	for name, c := range map[string]struct{ text, want string }{
		"an amount of a pod":    {pod + "spec: {initContainers: [{name: i, resources: {requests: {memory: [{}]}}}]}\n", `spec.initContainers[0].resources.requests.memory is [{}]: want a Kubernetes quantity of 0 or more`},
		"a field of a pod":      {pod + "spec: {containers: all}\n", "reading pod ml/a: "},
		"limits of a NodePool":  {"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: {limits: {cpu: lots}}\n", "lots"},
		"an autoscaler's words": {"kind: ConfigMap\napiVersion: v1\nmetadata: {name: cluster-autoscaler-status, namespace: kube-system}\ndata: {status: 'nodeGroups: 7'}\n", "not the YAML of release 1.30"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := parsed(t, c.text+"---\n"+pod)
			input, err := doctor.Read(objects, sharing.Reader{}, nil)
			if err != nil || len(input.Objects) != 2 || len(input.Objects[1].Unreadable) != 0 {
				t.Fatalf("%v, %+v", err, input.Objects)
			}
			found := doctor.Examine(input)
			if len(found) != 1 || found[0].Code != "object-unreadable" || !strings.Contains(found[0].Seen, c.want) {
				t.Errorf("found %+v, want %s", found, c.want)
			}
		})
	}
}
