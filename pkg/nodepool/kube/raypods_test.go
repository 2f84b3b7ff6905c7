package kube

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// podsUnderTest records which RayClusters change.
type podsUnderTest struct {
	*rayPods
	changes []string
}

func newPodsUnderTest(namespaces ...string) *podsUnderTest {
	p := &podsUnderTest{}
	p.rayPods = newRayPods(nil, attached.Config{Namespaces: namespaces, Changed: func(key nodepool.ClusterKey) { p.changes = append(p.changes, key.String()) }}, nil, nil)
	return p
}

// taken returns the changes since the last call, sorted.
func (p *podsUnderTest) taken() string {
	slices.Sort(p.changes)
	taken := strings.Join(p.changes, " ")
	p.changes = nil
	return taken
}

func (p *podsUnderTest) names(namespace, cluster string) string {
	var names []string
	for _, pod := range p.of(nodepool.ClusterKey{Namespace: namespace, Name: cluster}) {
		names = append(names, pod.Name+"@"+pod.Version)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func rayPod(namespace, cluster, name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: version,
		Labels: map[string]string{decode.ClusterLabel: cluster, "ray.io/node-type": "worker", "ray.io/group": "gpu"}}}
}

func TestPodsOfRayClustersFollowTheirWatch(t *testing.T) {
	p := newPodsUnderTest()
	store := p.Store("")
	steps := []struct {
		name          string
		do            func() error
		changes, pods string // pods are those of ml/llm
	}{
		{"the first list", func() error {
			return store.Replace([]any{rayPod("ml", "llm", "a", "1"), rayPod("ml", "llm", "b", "2"), rayPod("ml", "other", "c", "3")}, "3")
		}, "ml/llm ml/other", "a@1 b@2"},
		{"a new pod", func() error { return store.Add(rayPod("ml", "llm", "d", "4")) }, "ml/llm", "a@1 b@2 d@4"},
		{"a version that says nothing new", func() error { return store.Update(rayPod("ml", "llm", "d", "5")) }, "", "a@1 b@2 d@5"},
		{"a pod that gets a node", func() error {
			pod := rayPod("ml", "llm", "d", "6")
			pod.Spec.NodeName = "n1"
			return store.Update(pod)
		}, "ml/llm", "a@1 b@2 d@6"},
		{"a pod that goes to another RayCluster", func() error { return store.Update(rayPod("ml", "other", "b", "7")) }, "ml/llm ml/other", "a@1 d@6"},
		{"a pod that goes", func() error { return store.Delete(rayPod("ml", "llm", "d", "8")) }, "ml/llm", "a@1"},
		{"a list after the watch broke, without changes", func() error {
			return store.Replace([]any{rayPod("ml", "llm", "a", "9"), rayPod("ml", "other", "b", "7"), rayPod("ml", "other", "c", "3")}, "9")
		}, "", "a@9"},
		{"a list in which a RayCluster has gone", func() error {
			return store.Replace([]any{rayPod("ml", "llm", "a", "9"), rayPod("ml", "new", "e", "10")}, "10")
		}, "ml/new ml/other", "a@9"},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := p.taken(); got != step.changes {
			t.Errorf("%s changes %q, want %q", step.name, got, step.changes)
		}
		if got := p.names("ml", "llm"); got != step.pods {
			t.Errorf("%s leaves %q, want %q", step.name, got, step.pods)
		}
	}
	if left := p.Clusters(); len(left) != 2 {
		t.Errorf("kept RayClusters: %v", left)
	}
}

func TestAListOfANamespaceReplacesThatNamespaceAlone(t *testing.T) {
	p := newPodsUnderTest("ml", "web")
	ml, web := p.Store("ml"), p.Store("web")
	must(t, ml.Replace([]any{rayPod("ml", "llm", "a", "1")}, "1"))
	ended, end := context.WithCancel(t.Context())
	if end(); p.Await(ended) == nil {
		t.Fatal("full, and namespace web is unread")
	}
	must(t, web.Replace([]any{rayPod("web", "llm", "b", "2")}, "2"))
	must(t, p.Await(t.Context()))
	must(t, web.Replace(nil, "3"))
	if a, b := p.names("ml", "llm"), p.names("web", "llm"); a != "a@1" || b != "" {
		t.Errorf("pods %q and %q, want those of ml alone", a, b)
	}
}

func TestOfOneRayClusterItsPodsAloneAreRead(t *testing.T) {
	p := newRayPods(nil, attached.Config{Namespaces: []string{"web"}}, &nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, nil)
	if _, state := p.Objects.Of(nodepool.ClusterKey{Namespace: "web"}, ""); state.Unknown != "this process does not serve namespace web" || p.selector != "ray.io/cluster=llm" {
		t.Errorf("read are pods with %q, and of namespace web %v", p.selector, state)
	}
}

// noPods has no client of any namespace.
type noPods struct{}

func (noPods) Pods(string) corev1client.PodInterface { return nil }

func TestAFailureIsReportedAndTriedAgainWithoutALongPause(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err      error
		reported bool
	}{
		"forbidden":              {apierrors.NewForbidden(pods, "", errors.New("no")), true},
		"unavailable":            {apierrors.NewServiceUnavailable("starting"), true},
		"lists are not streamed": {apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil), false},
	} {
		reported := 0
		p := newRayPods(noPods{}, attached.Config{Logger: slog.New(slog.DiscardHandler)}, nil, func(error) { reported++ })
		source := p.source("")
		if source.Forbidden != nil {
			t.Errorf("%s: pods count as optional, so that reading them pauses for a minute", name)
		}
		if source.Failed(c.err); (reported > 0) != c.reported {
			t.Errorf("%s: reported %d times", name, reported)
		}
	}
}
