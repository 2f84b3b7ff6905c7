package kube

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// namespaceFake answers reads of single namespaces.
type namespaceFake struct {
	namespaceClient
	mu     sync.Mutex
	stored *corev1.Namespace
	err    error
}

func (f *namespaceFake) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil && f.stored == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	return f.stored, f.err
}

func (f *namespaceFake) set(namespace *corev1.Namespace, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stored, f.err = namespace, err
}

func withMode(mode string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml", Annotations: map[string]string{decode.ModeAnnotation: mode}}}
}

// watchedNamespaces are namespaces that note which of them changed.
func watchedNamespaces() (*namespaceWatch, *string) {
	changed := ""
	return newNamespaces(nil, nil, slog.New(slog.DiscardHandler), func(namespace string) { changed += namespace + " " }), &changed
}

func (n *namespaceWatch) readInto(cluster nodepool.Cluster) nodepool.Cluster {
	cluster.Key = llm
	n.AddTo(&cluster)
	return cluster
}

func TestARayClusterHasTheSettingsOfItsNamespaceUnlessItSaysItsOwn(t *testing.T) {
	n, changed := watchedNamespaces()
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
			return n.Store("").Replace([]any{namespaceOf("ml", "hardware"), namespaceOf("other", "")}, "")
		}, isolated, nodepool.RequireHardware, "", 0, "ml other"},
		{"its own goes first", func() error { return nil }, nodepool.Cluster{Isolation: nodepool.AnyIsolation}, nodepool.AnyIsolation, "", 0, ""},
		{"another default", func() error { return n.Store("").Update(namespaceOf("ml", "limit")) }, isolated, nodepool.RequireLimit, "", 0, "ml"},
		{"the same once more", func() error { return n.Store("").Update(namespaceOf("ml", "limit")) }, isolated, nodepool.RequireLimit, "", 0, ""},
		{"one that cannot be read", func() error { return n.Store("").Update(namespaceOf("ml", "strong")) }, isolated, nodepool.RequireHardware, "", 1, "ml"},
		{"a mode", func() error { return n.Store("").Update(withMode("managed")) }, managed, "", nodepool.Managed, 0, "ml"},
		{"its own mode goes first", func() error { return nil }, nodepool.Cluster{Mode: nodepool.Off}, "", "", 0, ""},
		{"a mode taken back", func() error { return n.Store("").Update(withMode("shadow")) }, managed, "", nodepool.Shadow, 0, "ml"},
		{"a mode that is none never means managed", func() error { return n.Store("").Update(withMode("Managed")) }, managed, "", nodepool.Shadow, 1, "ml"},
		{"an empty one neither", func() error { return n.Store("").Update(withMode("")) }, managed, "", nodepool.Shadow, 1, "ml"},
		{"of another namespace", func() error { return n.Store("").Update(namespaceOf("other", "any")) }, managed, "", nodepool.Shadow, 1, "other"},
		{"no annotation", func() error { return n.Store("").Update(namespaceOf("ml", "")) }, managed, "", "", 0, "ml"},
		{"the same list", func() error {
			return n.Store("").Replace([]any{namespaceOf("ml", ""), namespaceOf("other", "any")}, "")
		}, managed, "", "", 0, ""},
	}
	for _, step := range steps {
		*changed = ""
		must(t, step.do())
		got := n.readInto(step.own)
		if got.Isolation != step.isolation || got.NamespaceMode != step.mode || len(got.Findings) != step.findings || strings.Join(slices.Sorted(strings.FieldsSeq(*changed)), " ") != step.changed || got.NamespaceUnknown != "" {
			t.Errorf("%s: isolation %q, mode %q, findings %v, changed %q, unknown %q; want %+v", step.name, got.Isolation, got.NamespaceMode, got.Findings, *changed, got.NamespaceUnknown, step)
		}
		for _, f := range got.Findings {
			if f.Object != "Namespace ml" || f.Code != decode.AnnotationUnreadable ||
				!strings.HasPrefix(f.Field, `metadata.annotations["heliostat.dev/`) {
				t.Errorf("%s: finding %+v, want one that names the Namespace and the annotation", step.name, f)
			}
		}
	}
	if err := n.Store("").Delete(namespaceOf("ml", "")); err != nil || n.readInto(managed).NamespaceUnknown == "" {
		t.Errorf("%v; the mode of a namespace that was deleted counts as known", err)
	}
}

func TestTheModeOfANamespaceThatMayNotBeReadIsUnknown(t *testing.T) {
	n, changed := watchedNamespaces()
	if got := n.readInto(nodepool.Cluster{}); got.NamespaceUnknown == "" || len(got.Findings) != 0 {
		t.Errorf("before the first list: unknown %q, findings %v; want it unknown, and nothing to report", got.NamespaceUnknown, got.Findings)
	}
	must(t, n.Store("").Replace([]any{withMode("managed")}, ""))
	n.Unread("", "no")
	n.Unread("", "no")
	got := n.readInto(nodepool.Cluster{})
	if got.NamespaceMode != "" || got.NamespaceUnknown == "" || len(got.Findings) != 1 || got.Findings[0].Code != NamespacesForbidden {
		t.Errorf("mode %q, unknown %q, findings %v; a mode that could be taken back unseen must not hold on", got.NamespaceMode, got.NamespaceUnknown, got.Findings)
	}
	if got := n.readInto(nodepool.Cluster{Mode: nodepool.Managed}); got.NamespaceUnknown != "" || len(got.Findings) != 0 {
		t.Errorf("with a mode of its own: unknown %q, findings %v", got.NamespaceUnknown, got.Findings)
	}
	if err := n.Store("").Replace([]any{withMode("managed")}, ""); err != nil || n.readInto(nodepool.Cluster{}).NamespaceMode != nodepool.Managed || *changed != "ml ml ml " {
		t.Errorf("%v; changed %q after the right was granted", err, *changed)
	}
}

func TestNamedNamespacesArePolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &namespaceFake{}
		n := newNamespaces(client, []string{"ml"}, slog.New(slog.DiscardHandler), func(string) {})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		client.set(withMode("managed"), nil)
		go func() {
			defer close(ended)
			if err := n.Start(ctx); err != nil {
				t.Error(err)
			}
		}()
		if err := n.Await(ctx); err != nil {
			t.Error(err)
		}
		for _, step := range []struct {
			name    string
			stored  *corev1.Namespace
			err     error
			want    nodepool.Mode
			unknown bool
		}{
			{"the first", withMode("managed"), nil, nodepool.Managed, false},
			{"a changed one", withMode("off"), nil, nodepool.Off, false},
			{"one that may not be read", nil, errForbidden, "", true},
			{"one that may be read again", withMode("managed"), nil, nodepool.Managed, false},
			{"no answer proves nothing", nil, errors.New("the server is currently unable to handle the request"), nodepool.Managed, false},
			{"no answer for long is as unknown", nil, errors.New("timeout"), "", true},
			{"one that is gone", nil, nil, "", true},
		} {
			client.set(step.stored, step.err)
			if time.Sleep(2 * namespacePoll); strings.Contains(step.name, "long") {
				time.Sleep(namespacesLast)
			}
			if got := n.readInto(nodepool.Cluster{}); got.NamespaceMode != step.want || (got.NamespaceUnknown != "") != step.unknown {
				t.Errorf("%s: mode %q, unknown %q; want %q", step.name, got.NamespaceMode, got.NamespaceUnknown, step.want)
			}
		}
		cancel()
		<-ended
	})
}

// TestTheLastKnownIsolationHoldsWhileANamespaceMayNotBeRead is for an API server that refuses at its start: until it
// answers, no pod gets a GPU that is not isolated as the namespace wants.
func TestTheLastKnownIsolationHoldsWhileANamespaceMayNotBeRead(t *testing.T) {
	n, _ := watchedNamespaces()
	n.Store("").ReplaceAll([]*corev1.Namespace{namespaceOf("ml", "hardware")}, "")
	n.Unread("", errForbidden.Error())
	if got := n.readInto(nodepool.Cluster{Mode: nodepool.Managed}); got.Isolation != nodepool.RequireHardware {
		t.Errorf("isolation %q, want the last known one", got.Isolation)
	}
}

// TestNothingIsKeptOfNamespacesThatAreGone is for a cluster in which namespaces come and go for years.
func TestNothingIsKeptOfNamespacesThatAreGone(t *testing.T) {
	n, _ := watchedNamespaces()
	n.Store("").ReplaceAll([]*corev1.Namespace{namespaceOf("deleted", "hardware"), namespaceOf("missed", "limit")}, "")
	n.Store("").Remove(namespaceOf("deleted", "hardware"))
	n.Store("").ReplaceAll([]*corev1.Namespace{namespaceOf("there", "limit")}, "")
	n.isolations.Range(func(name, _ any) bool {
		if name != "there" {
			t.Errorf("the isolation of Namespace %v is kept", name)
		}
		return true
	})
}

// TestAFreshLookAtARayClusterNoticesThatItsNamespacesModeIsGone is for a watch that stalls: no worker may be taken away
// after somebody has removed the mode.
func TestAFreshLookAtARayClusterNoticesThatItsNamespacesModeIsGone(t *testing.T) {
	client := &namespaceFake{}
	n := newNamespaces(client, nil, slog.New(slog.DiscardHandler), func(string) {})
	n.Store("").ReplaceAll([]*corev1.Namespace{withMode("managed")}, "")
	for _, test := range []struct {
		now     *corev1.Namespace
		err     error
		own     nodepool.Mode
		unknown string
	}{
		{withMode("managed"), nil, "", ""},
		{withMode("shadow"), nil, "", "the mode of Namespace ml has just changed"},
		{namespaceOf("ml", ""), nil, "", "the mode of Namespace ml has just changed"},
		{withMode(""), nil, "", "the mode of Namespace ml has just changed"},
		{nil, nil, "", "Namespace ml cannot be read at the moment"},
		{nil, errors.New("timeout"), "", "Namespace ml cannot be read at the moment"},
		{nil, errForbidden, "", ""}, // the watch shows it
		{withMode("shadow"), nil, nodepool.Managed, ""},
	} {
		client.set(test.now, test.err)
		cluster := n.readInto(nodepool.Cluster{Mode: test.own})
		if n.Recheck(t.Context(), &cluster); cluster.NamespaceUnknown != test.unknown {
			t.Errorf("%+v, %v: unknown %q, want %q", test.now, test.err, cluster.NamespaceUnknown, test.unknown)
		}
	}
}

func TestAClusterWithGPUsHasAFindingThatItsNamespacesDefaultIsUnknown(t *testing.T) {
	n, _ := watchedNamespaces()
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
	n.Unread("", "no")
	if got := reported("", gpus); got != NamespacesForbidden {
		t.Errorf("reported %q, want %s", got, NamespacesForbidden)
	}
	if got := reported("limit", gpus) + reported("", []nodepool.WorkerGroup{{}}); got != "" {
		t.Errorf("reported %q where there is an isolation, or no GPU", got)
	}
	if err := n.Store("").Replace([]any{namespaceOf("ml", "")}, ""); err != nil || reported("", gpus) != "" {
		t.Errorf("%v; reported %q after the right was granted", err, reported("", gpus))
	}
}
