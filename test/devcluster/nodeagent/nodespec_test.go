package nodeagent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestLoadNodes(t *testing.T) {
	got, err := LoadNodes(strings.NewReader(`
- name: mig-0
  labels: {nvidia.com/mig.strategy: mixed}
  taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
  capacity: {cpu: "16", memory: 64Gi, nvidia.com/mig-1g.10gb: "7"}
  allocatable: {cpu: 15500m}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []NodeSpec{{
		Name:        "mig-0",
		Labels:      map[string]string{"nvidia.com/mig.strategy": "mixed"},
		Taints:      []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}},
		Capacity:    map[string]string{"cpu": "16", "memory": "64Gi", "nvidia.com/mig-1g.10gb": "7"},
		Allocatable: map[string]string{"cpu": "15500m"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestResourcesDefaultToCapacity(t *testing.T) {
	spec := NodeSpec{Capacity: map[string]string{"cpu": "4", "nvidia.com/gpu": "8"}, Allocatable: map[string]string{"cpu": "3"}}
	capacity, allocatable, err := spec.resources()
	if err != nil {
		t.Fatal(err)
	}
	print := func(list corev1.ResourceList) map[string]string {
		printed := map[string]string{}
		for name, amount := range list {
			printed[string(name)] = amount.String()
		}
		return printed
	}
	if diff := cmp.Diff(map[string]string{"cpu": "4", "nvidia.com/gpu": "8", "pods": "110"}, print(capacity)); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"cpu": "3", "nvidia.com/gpu": "8", "pods": "110"}, print(allocatable)); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
}

func TestLoadNodesNamesFileNodeFieldAndValue(t *testing.T) {
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		{"a quantity that is none", `[{name: a, capacity: {cpu: many}}]`, []string{"node 0: a: capacity: cpu", `"many"`}},
		{"a negative quantity", `[{name: a, capacity: {cpu: "-1"}}]`, []string{"a: capacity: cpu", `"-1"`, "negative"}},
		{"no capacity", `[{name: a}]`, []string{"node 0: a: capacity: missing"}},
		{"more allocatable than capacity", `[{name: a, capacity: {cpu: "1"}, allocatable: {cpu: "2"}}]`, []string{"a: allocatable: cpu", `"2"`, `"1"`}},
		{"an unknown field", `[{name: a, capacty: {cpu: "1"}}]`, []string{"capacty"}},
		{"a bad name", `[{name: "A b", capacity: {cpu: "1"}}]`, []string{"node 0", `name "A b"`}},
		{"a name twice", `[{name: a, capacity: {cpu: "1"}}, {name: a, capacity: {cpu: "1"}}]`, []string{"node 1", `another node has the name "a"`}},
		{"a bad label", `[{name: a, capacity: {cpu: "1"}, labels: {x: "a b"}}]`, []string{"a: labels: x", `"a b"`}},
		{"a bad taint", `[{name: a, capacity: {cpu: "1"}, taints: [{key: k, effect: Never}]}]`, []string{"a: taints[0].effect", `"Never"`}},
		{"no nodes", `[]`, []string{"no nodes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "nodes.yaml")
			if err := os.WriteFile(path, []byte(c.file), 0o644); err != nil {
				t.Fatal(err)
			}
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			_, err = LoadNodes(file)
			if err == nil {
				t.Fatal("LoadNodes succeeded")
			}
			for _, part := range append(c.want, path) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not name %s", err, part)
				}
			}
		})
	}
}
