package kube

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", errors.New("no"))

func namespaceOf(name, isolation string) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if isolation != "" {
		namespace.Annotations = map[string]string{nodepool.IsolationAnnotation: isolation}
	}
	return namespace
}

// namespaceFake answers reads of single namespaces, lists and watches.
type namespaceFake struct {
	mu                    sync.Mutex
	stored                map[string]*corev1.Namespace
	getForbidden, noLists bool
	gets                  int
}

func (f *namespaceFake) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gets++
	switch known := f.stored[name]; {
	case f.getForbidden:
		return nil, errForbidden
	case known == nil:
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	default:
		return known, nil
	}
}

func (f *namespaceFake) List(context.Context, metav1.ListOptions) (*corev1.NamespaceList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.noLists {
		return nil, errForbidden
	}
	return &corev1.NamespaceList{}, nil
}

func (f *namespaceFake) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errForbidden
}

func (f *namespaceFake) set(namespace *corev1.Namespace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stored = map[string]*corev1.Namespace{namespace.Name: namespace}
}

func withMode(mode string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml", Annotations: map[string]string{decode.ModeAnnotation: mode}}}
}

// watchedNamespaces are namespaces that note which of them changed, all as "*".
func watchedNamespaces(client namespaceClient, named ...string) (*namespaceWatch, *string) {
	changed := ""
	return newNamespaces(client, named, slog.New(slog.DiscardHandler), func(namespace string) { changed += cmp.Or(namespace, "*") + " " }), &changed
}

func (n *namespaceWatch) readInto(cluster nodepool.Cluster) nodepool.Cluster {
	cluster.Key = llm
	n.AddTo(&cluster)
	return cluster
}

func TestARayClusterHasTheSettingsOfItsNamespaceUnlessItSaysItsOwn(t *testing.T) {
	n, changed := watchedNamespaces(nil)
	var isolated, managed nodepool.Cluster
	steps := []struct {
		name      string
		do        func() error
		own       nodepool.Cluster
		isolation nodepool.RequiredIsolation
		mode      nodepool.Mode
		findings  int
		changed   string
	}{
		{"defaults", func() error {
			return n.store().Replace([]any{namespaceOf("ml", "hardware"), namespaceOf("other", "")}, "")
		}, isolated, nodepool.RequireHardware, "", 0, "* "},
		{"its own goes first", func() error { return nil }, nodepool.Cluster{Isolation: nodepool.AnyIsolation}, nodepool.AnyIsolation, "", 0, ""},
		{"another default", func() error { return n.store().Update(namespaceOf("ml", "limit")) }, isolated, nodepool.RequireLimit, "", 0, "ml "},
		{"the same once more", func() error { return n.store().Update(namespaceOf("ml", "limit")) }, isolated, nodepool.RequireLimit, "", 0, ""},
		{"one that cannot be read", func() error { return n.store().Update(namespaceOf("ml", "strong")) }, isolated, nodepool.RequireHardware, "", 1, "ml "},
		{"a mode", func() error { return n.store().Update(withMode("managed")) }, managed, "", nodepool.Managed, 0, "ml "},
		{"its own mode goes first", func() error { return nil }, nodepool.Cluster{Mode: nodepool.Off}, "", "", 0, ""},
		{"a mode taken back", func() error { return n.store().Update(withMode("shadow")) }, managed, "", nodepool.Shadow, 0, "ml "},
		{"a mode that is none never means managed", func() error { return n.store().Update(withMode("Managed")) }, managed, "", nodepool.Shadow, 1, "ml "},
		{"an empty one neither", func() error { return n.store().Update(withMode("")) }, managed, "", nodepool.Shadow, 1, "ml "},
		{"of another namespace", func() error { return n.store().Update(namespaceOf("other", "any")) }, managed, "", nodepool.Shadow, 1, "other "},
		{"no annotation", func() error { return n.store().Update(namespaceOf("ml", "")) }, managed, "", "", 0, "ml "},
		{"the same list", func() error { return n.store().Replace([]any{namespaceOf("ml", ""), namespaceOf("other", "any")}, "") }, managed, "", "", 0, ""},
	}
	for _, step := range steps {
		*changed = ""
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		got := n.readInto(step.own)
		if got.Isolation != step.isolation || got.NamespaceMode != step.mode || len(got.Findings) != step.findings || *changed != step.changed || got.NamespaceUnknown != "" {
			t.Errorf("%s: isolation %q, mode %q, findings %v, changed %q, unknown %q; want %+v", step.name, got.Isolation, got.NamespaceMode, got.Findings, *changed, got.NamespaceUnknown, step)
		}
		for _, f := range got.Findings {
			if f.Object != "Namespace ml" || f.Code != decode.AnnotationUnreadable ||
				!strings.HasPrefix(f.Field, `metadata.annotations["heliostat.dev/`) {
				t.Errorf("%s: finding %+v, want one that names the Namespace and the annotation", step.name, f)
			}
		}
	}
	if err := n.store().Delete(namespaceOf("ml", "")); err != nil || n.readInto(managed).NamespaceUnknown == "" {
		t.Errorf("%v; the mode of a namespace that was deleted counts as known", err)
	}
}

func TestTheModeOfANamespaceThatMayNotBeReadIsUnknown(t *testing.T) {
	n, changed := watchedNamespaces(nil)
	if got := n.readInto(nodepool.Cluster{}); got.NamespaceUnknown == "" || len(got.Findings) != 0 {
		t.Errorf("before the first list: unknown %q, findings %v; want it unknown, and nothing to report", got.NamespaceUnknown, got.Findings)
	}
	if err := n.store().Replace([]any{withMode("managed")}, ""); err != nil {
		t.Fatal(err)
	}
	n.forbid(errForbidden)
	n.forbid(errForbidden)
	got := n.readInto(nodepool.Cluster{})
	if got.NamespaceMode != "" || got.NamespaceUnknown == "" || len(got.Findings) != 1 || got.Findings[0].Code != NamespacesForbidden {
		t.Errorf("mode %q, unknown %q, findings %v; a mode that could be taken back unseen must not hold on", got.NamespaceMode, got.NamespaceUnknown, got.Findings)
	}
	if got := n.readInto(nodepool.Cluster{Mode: nodepool.Managed}); got.NamespaceUnknown != "" || len(got.Findings) != 0 {
		t.Errorf("with a mode of its own: unknown %q, findings %v", got.NamespaceUnknown, got.Findings)
	}
	if err := n.store().Replace([]any{withMode("managed")}, ""); err != nil || n.readInto(nodepool.Cluster{}).NamespaceMode != nodepool.Managed || *changed != "* * * " {
		t.Errorf("%v; changed %q after the right was granted", err, *changed)
	}
}

func TestANamespaceThatMayNotBeListedIsPolledByName(t *testing.T) {
	client := &namespaceFake{noLists: true}
	client.set(withMode("managed"))
	news := make(chan string, 16)
	n := newNamespaces(client, []string{"ml"}, slog.New(slog.DiscardHandler), func(namespace string) { news <- namespace })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := n.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	until := func(want nodepool.Mode, unknown bool) {
		t.Helper()
		for got := n.readInto(nodepool.Cluster{}); got.NamespaceMode != want || (got.NamespaceUnknown != "") != unknown; got = n.readInto(nodepool.Cluster{}) {
			select {
			case <-news:
			case <-time.After(20 * time.Second):
				t.Fatalf("mode %q, unknown %q; want %q", got.NamespaceMode, got.NamespaceUnknown, want)
			}
		}
	}
	n.Await(ctx)
	until(nodepool.Managed, false)
	client.set(withMode("off"))
	until(nodepool.Off, false)
	client.mu.Lock()
	client.getForbidden = true
	client.mu.Unlock()
	until("", true)
	cancel()
	<-ended
}

func TestAFreshLookReadsTheNamespaceAnew(t *testing.T) {
	client := &namespaceFake{}
	client.set(withMode("shadow"))
	n, _ := watchedNamespaces(client)
	if err := n.store().Replace([]any{withMode("managed")}, ""); err != nil {
		t.Fatal(err)
	}
	n.Refresh(t.Context(), "ml")
	if got := n.readInto(nodepool.Cluster{}); got.NamespaceMode != nodepool.Shadow {
		t.Errorf("mode %q, want the one that the API server has now", got.NamespaceMode)
	}
	client.getForbidden = true
	n.Refresh(t.Context(), "ml")
	n.Refresh(t.Context(), "ml")
	if got := n.readInto(nodepool.Cluster{}); got.NamespaceMode != nodepool.Shadow || got.NamespaceUnknown != "" || client.gets != 2 {
		t.Errorf("mode %q, unknown %q, %d reads; want what the watch shows, and no second try at once", got.NamespaceMode, got.NamespaceUnknown, client.gets)
	}
}

func TestAClusterWithGPUsHasAFindingThatItsNamespacesDefaultIsUnknown(t *testing.T) {
	n, _ := watchedNamespaces(nil)
	gpus := []nodepool.WorkerGroup{{Slices: []landing.Slice{{}}}}
	reported := func(isolation nodepool.RequiredIsolation, groups []nodepool.WorkerGroup) (codes string) {
		for _, f := range n.readInto(nodepool.Cluster{Mode: nodepool.Managed, Isolation: isolation, Groups: groups}).Findings {
			codes += f.Code
		}
		return codes
	}
	if got := reported("", gpus); got != "" {
		t.Errorf("reported %q before it is forbidden", got)
	}
	n.forbid(errForbidden)
	if got := reported("", gpus); got != NamespacesForbidden {
		t.Errorf("reported %q, want %s", got, NamespacesForbidden)
	}
	if got := reported("limit", gpus) + reported("", []nodepool.WorkerGroup{{}}); got != "" {
		t.Errorf("reported %q where there is an isolation, or no GPU", got)
	}
	if err := n.store().Replace([]any{namespaceOf("ml", "")}, ""); err != nil || reported("", gpus) != "" {
		t.Errorf("%v; reported %q after the right was granted", err, reported("", gpus))
	}
	if err := n.store().Replace([]any{namespaceOf("ml", "hardware")}, ""); err != nil {
		t.Fatal(err)
	}
	n.forbid(errForbidden)
	if got := n.readInto(nodepool.Cluster{}); got.Isolation != nodepool.RequireHardware {
		t.Errorf("isolation %q: what was required must hold on when the right is lost", got.Isolation)
	}
}
