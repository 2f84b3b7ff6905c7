package decode

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// underLimits decodes a RayCluster with one group in a namespace with LimitRanges, each of one item.
func underLimits(t *testing.T, podSpec string, items ...string) Decoded {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: llm, namespace: ml}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: h, image: i}]}}}
  workerGroupSpecs: [{groupName: g, maxReplicas: 4, template: {spec: `+podSpec+`}}]
`), &object.Object); err != nil {
		t.Fatal(err)
	}
	var ranges []*corev1.LimitRange
	for i, item := range items {
		limits := &corev1.LimitRange{}
		limits.Name = fmt.Sprint("l", i+1)
		limits.CreationTimestamp = moment(1)
		changed := moment(5)
		limits.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &changed}}
		if err := yaml.Unmarshal([]byte("limits: [{type: Container, "+item+"}]"), &limits.Spec); err != nil {
			t.Fatal(err)
		}
		ranges = append(ranges, limits)
	}
	d := DecodeObject(object)
	UnderLimitRanges(object, &d, ranges)
	return d
}

// The API server first gives containers the defaults of all LimitRanges, and then checks them (LimitRanger, Admit and
// Validate), init containers too.
func TestAllLimitRangesOfTheNamespaceCount(t *testing.T) {
	const bare = "{containers: [{name: w, image: i}]}"
	for _, c := range []struct {
		pod     string
		items   []string
		cpu     int64
		refused string
	}{
		{bare, []string{"min: {cpu: 2}", "defaultRequest: {cpu: 3}"}, 2, ""},
		{bare, []string{"defaultRequest: {cpu: 3}", "min: {cpu: 2}"}, 3, ""},
		{bare, []string{"default: {cpu: 3}", "max: {cpu: 2}"}, 3, "containers[0].resources.limits.cpu: LimitRange l2 refuses every pod of the group: at most 2"},
		{bare, []string{"max: {cpu: 2}", "default: {cpu: 3}"}, 2, ""},
		{bare, []string{"default: {cpu: 3}, defaultRequest: {cpu: 1}, maxLimitRequestRatio: {cpu: 2}"}, 1, "containers[0].resources.limits.cpu: LimitRange l1 refuses every pod of the group: a limit of at most 2 times the request, which is 1"},
		{"{containers: [{name: w, image: i, resources: {requests: {cpu: 1}}}], initContainers: [{name: init, image: i, resources: {limits: {cpu: 4}}}]}",
			[]string{"max: {cpu: 3}"}, 4, "initContainers[0].resources.limits.cpu: LimitRange l1 refuses every pod of the group: at most 3"},
		{"{containers: [{name: w, image: i, resources: {limits: {cpu: 1}}}], initContainers: [{name: init, image: i}]}", []string{"default: {cpu: 2}"}, 2, ""},
	} {
		d := underLimits(t, c.pod, c.items...)
		if got := d.Cluster.Groups[0].Pod.Requests["cpu"]; got != raydemand.Whole(c.cpu) {
			t.Errorf("%s: pods request %v CPUs, want %d", c.items, got, c.cpu)
		}
		said := ""
		for _, f := range d.Findings {
			if f.Code == PodsRefused {
				said += strings.TrimPrefix(f.Field, "spec.workerGroupSpecs[0].template.spec.") + ": " + f.Why
			}
		}
		if said != c.refused {
			t.Errorf("%s: says %q, want %q", c.items, said, c.refused)
		}
	}
}

// A worker that runs proves that its group's pods are admitted, unless it is from before the LimitRange's last change.
func TestOnlyALaterWorkerDisprovesALimitRange(t *testing.T) {
	d := underLimits(t, "{containers: [{name: w, image: i, resources: {limits: {cpu: 4}}}]}", "max: {cpu: 3}")
	running := rayState(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: moment(9)}}, 0)
	for second, closed := range map[int]bool{0: true, 3: true, 5: true, 6: false} {
		worker := pod("w", "worker", "g", running, func(p *corev1.Pod) { p.CreationTimestamp = moment(second) })
		if got := Join(d, kept(worker)).Groups[0].Broken; got != closed {
			t.Errorf("with a worker of second %d: closed %v, want %v", second, got, closed)
		}
	}
}
