package landing

import (
	"reflect"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestShapesOfOneClassAreEqualButForTheirNeighbors(t *testing.T) {
	shape := func() *PodShape {
		return &PodShape{
			NodeName: "n", Requests: Quantities{"cpu": 1, "memory": 2, "nvidia.com/gpu": raydemand.One},
			Selector:    map[string]string{"a": "b", "c": "d"},
			Affinity:    []NodeTerm{{Labels: []Requirement{{Key: "k", Operator: "In", Values: []string{"v"}}}}},
			Tolerations: []Toleration{{Key: "t"}}, CardsAsked: 2, Parts: []Quantities{{}}, Own: Quantities{"cpu": 1}, Share: &sharing.CardShare{Cards: 1},
			Choice: sharing.CardChoice{"nvidia.com/use-gputype": "H100"}, Elsewhere: map[string]bool{"a/b": true},
			ClaimTemplates: []string{"one-gpu"}, AbsentClasses: map[string]string{"cpu": "gpu.example.com"},
			Neighbors: Neighbors{Namespace: "one"},
		}
	}
	first, beside := shape(), shape()
	beside.Neighbors = Neighbors{Namespace: "two", Labels: map[string]string{"ray.io/cluster": "two"}}
	if KeyOf(first) != KeyOf(beside) {
		t.Error("shapes that differ in their neighbors alone are of different classes")
	}
	if KeyOf(first) == (Key{}) || KeyOf(&PodShape{}) == (Key{}) {
		t.Error("a shape is of no class")
	}
	fields := reflect.TypeFor[PodShape]()
	for i := range fields.NumField() {
		if name := fields.Field(i).Name; name != "Neighbors" && name != "Limits" {
			other := shape()
			change(t, reflect.ValueOf(other).Elem().Field(i))
			if KeyOf(other) == KeyOf(first) {
				t.Errorf("shapes that differ in %s are of one class", name)
			}
		}
	}
	other := shape()
	other.Affinity[0].Labels[0].Values[0] = "w"
	other.Affinity = append([]NodeTerm(nil), other.Affinity...)
	if KeyOf(other) == KeyOf(first) {
		t.Error("shapes that differ in a value of the node affinity are of one class")
	}
}

// change gives a field another value.
func change(t *testing.T, field reflect.Value) {
	t.Helper()
	switch field.Kind() {
	case reflect.String:
		field.SetString(field.String() + "!")
	case reflect.Int64:
		field.SetInt(field.Int() + 1)
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.Map, reflect.Slice:
		field.SetZero()
	case reflect.Pointer:
		change(t, field.Elem().Field(0))
	case reflect.Struct:
		change(t, field.Field(0))
	default:
		t.Fatalf("a field of kind %s is new to this test", field.Kind())
	}
}

func TestAShapeLeavesOpenWhatClaimsSupply(t *testing.T) {
	class, all := map[string]string{gpuinfo.NvidiaGPU: "a class"}, map[string]string{"": "all are unknown"}
	for name, test := range map[string]struct {
		node     Node
		resource string
		want     outlook
	}{
		"a shape, and a name that a class supplies":    {Node{Declared: true, Open: class}, gpuinfo.NvidiaGPU, unsaid},
		"a shape, and a name that no class supplies":   {Node{Declared: true, Open: class}, "amd.com/gpu", never},
		"a shape, and a name that a class may supply":  {Node{Declared: true, Open: all}, gpuinfo.NvidiaGPU, unsaid},
		"a shape, and a name that no class can supply": {Node{Declared: true, Open: all}, "cpu", never},
		"a shape, while nobody says what is supplied":  {Node{Declared: true}, gpuinfo.NvidiaGPU, never},
		"a node without devices of the DeviceClass":    {Node{}, gpuinfo.ClassPrefix + "gpu.nvidia.com", never},
	} {
		test.node.Ready = true
		if got := new(PodShape).outlook(&test.node, mismatch{kind: notAnnounced, what: test.resource}); got != test.want {
			t.Errorf("%s: outlook %v, want %v", name, got, test.want)
		}
	}
}

// Such a taint is on one node, so a new node of its pool may hold the pod.
func TestATaintOfOneNodesStateProvesNothingAboutItsPool(t *testing.T) {
	for key, want := range map[string]outlook{
		"nvidia.com/gpu-xid-error": unsaid, "aws-node-termination-handler/spot-itn": unsaid, "ToBeDeletedByClusterAutoscaler": unsaid,
		"cloud.google.com/impending-node-termination": unsaid, "karpenter.sh/unregistered": unsaid, "node.cilium.io/agent-not-ready": unsaid,
		"nvidia.com/gpu": never, "example.com/team": never,
	} {
		taint := sharing.Taint{Key: key, Effect: sharing.NoSchedule}
		if got := new(PodShape).outlook(&Node{Ready: true}, mismatch{kind: tainted, taint: taint}); got != want {
			t.Errorf("%s: outlook %v, want %v", key, got, want)
		}
	}
}
