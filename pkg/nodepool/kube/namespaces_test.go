package kube

import (
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func namespaceOf(name, isolation string) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if isolation != "" {
		namespace.Annotations = map[string]string{nodepool.IsolationAnnotation: isolation}
	}
	return namespace
}

func TestARayClusterHasTheIsolationOfItsNamespaceUnlessItSaysItsOwn(t *testing.T) {
	changes := 0
	n := newNamespaces(nil, slog.New(slog.DiscardHandler), func() { changes++ })
	read := func(own nodepool.RequiredIsolation) (nodepool.RequiredIsolation, int) {
		cluster := nodepool.Cluster{Key: llm, Isolation: own}
		n.addTo(&cluster)
		return cluster.Isolation, len(cluster.Findings)
	}
	steps := []struct {
		name string
		do   func() error
		own  nodepool.RequiredIsolation
		want nodepool.RequiredIsolation
		told int
		// changes so far.
		changes int
	}{
		{"nothing is known", func() error { return nil }, "", "", 0, 0},
		{"a default", func() error { return n.Replace([]any{namespaceOf("ml", "hardware"), namespaceOf("other", "")}, "") }, "", nodepool.RequireHardware, 0, 1},
		{"its own goes first", func() error { return nil }, nodepool.AnyIsolation, nodepool.AnyIsolation, 0, 1},
		{"another default", func() error { return n.Update(namespaceOf("ml", "limit")) }, "", nodepool.RequireLimit, 0, 2},
		{"the same once more", func() error { return n.Update(namespaceOf("ml", "limit")) }, "", nodepool.RequireLimit, 0, 2},
		{"one that cannot be read", func() error { return n.Update(namespaceOf("ml", "strong")) }, "", nodepool.RequireHardware, 1, 3},
		{"gone from the list", func() error { return n.Replace([]any{namespaceOf("other", "")}, "") }, "", "", 0, 4},
		{"added", func() error { return n.Add(namespaceOf("ml", "any")) }, "", nodepool.AnyIsolation, 0, 5},
		{"deleted", func() error { return n.Delete(namespaceOf("ml", "any")) }, "", "", 0, 6},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got, told := read(step.own); got != step.want || told != step.told || changes != step.changes {
			t.Errorf("%s: isolation %q, %d findings, %d changes; want %q, %d, %d", step.name, got, told, changes, step.want, step.told, step.changes)
		}
	}
}

func TestAClusterWithGPUsIsToldThatItsNamespacesDefaultIsNotKnown(t *testing.T) {
	changes := 0
	n := newNamespaces(nil, slog.New(slog.DiscardHandler), func() { changes++ })
	gpus := []nodepool.WorkerGroup{{Slices: []nodepool.SliceAnswer{{}}}}
	told := func(isolation nodepool.RequiredIsolation, groups []nodepool.WorkerGroup) (codes string) {
		cluster := nodepool.Cluster{Key: llm, Isolation: isolation, Groups: groups}
		n.addTo(&cluster)
		for _, f := range cluster.Findings {
			codes += f.Code
		}
		return codes
	}
	if got := told("", gpus); got != "" {
		t.Errorf("told %q before it is forbidden", got)
	}
	n.forbid(errForbidden)
	n.forbid(errForbidden)
	if got := told("", gpus); got != NamespacesForbidden {
		t.Errorf("told %q, want %s", got, NamespacesForbidden)
	}
	if got := told("limit", gpus) + told("", []nodepool.WorkerGroup{{}}); got != "" {
		t.Errorf("told %q where there is an isolation, or no GPU", got)
	}
	if err := n.Replace([]any{namespaceOf("ml", "")}, ""); err != nil || told("", gpus) != "" || changes != 2 {
		t.Errorf("%v; told %q, %d changes after the right was granted", err, told("", gpus), changes)
	}
	if err := n.Replace([]any{namespaceOf("ml", "hardware")}, ""); err != nil {
		t.Fatal(err)
	}
	n.forbid(errForbidden)
	cluster := nodepool.Cluster{Key: llm}
	if n.addTo(&cluster); cluster.Isolation != nodepool.RequireHardware {
		t.Errorf("isolation %q: what was required must hold on when the right is lost", cluster.Isolation)
	}
}

func TestTheAnnotationOfARayClusterSaysItsIsolation(t *testing.T) {
	for text, want := range map[string]struct {
		isolation nodepool.RequiredIsolation
		told      int
	}{"limit": {nodepool.RequireLimit, 0}, "any": {nodepool.AnyIsolation, 0}, "strong": {nodepool.RequireHardware, 1}} {
		report := &findings{}
		var cluster nodepool.Cluster
		readAnnotations(fields{values: map[string]any{"annotations": map[string]any{nodepool.IsolationAnnotation: text}}, report: report}, &cluster)
		if cluster.Isolation != want.isolation || len(report.list) != want.told {
			t.Errorf("%s: %s with findings %v", text, cluster.Isolation, report.list)
		}
	}
}
