package kube

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func quotaOf(name string, hard, used map[corev1.ResourceName]string) *corev1.ResourceQuota {
	list := func(of map[corev1.ResourceName]string) corev1.ResourceList {
		all := corev1.ResourceList{}
		for key, amount := range of {
			all[key] = resource.MustParse(amount)
		}
		return all
	}
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name},
		Spec: corev1.ResourceQuotaSpec{Hard: list(hard)}, Status: corev1.ResourceQuotaStatus{Used: list(used)}}
}

type amounts = map[corev1.ResourceName]string

// The RayCluster has three workers of one GPU, of which one has failed and one ends, and so does a head without GPUs.
func TestAQuotaLeavesWhatOthersDoNotUse(t *testing.T) {
	cluster := func() nodepool.Cluster {
		return nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"},
			Groups: []nodepool.WorkerGroup{
				{Name: "gpu", Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One, "cpu": raydemand.Whole(4)}, Limits: landing.Quantities{"memory": raydemand.Whole(8)}}},
				{Name: "cpu", Pod: landing.PodShape{Requests: landing.Quantities{"cpu": raydemand.Whole(2)}},
					Unstated: map[string][]string{"limits.cpu": {"w", "side"}}}},
			Workers: []nodepool.Worker{{Group: "gpu"}, {Group: "gpu", Failed: true}, {Group: "gpu", Terminating: true}}}
	}
	of := func(resource string, amount int64, takes raydemand.Bundle) []landing.Quota {
		return []landing.Quota{{Name: "ResourceQuota q, less what others use,", Resource: resource, Amount: raydemand.Whole(amount), PodTakes: takes}}
	}
	scoped := quotaOf("q", amounts{"pods": "1"}, nil)
	scoped.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
	for name, c := range map[string]struct {
		quota *corev1.ResourceQuota
		want  []landing.Quota
	}{
		"GPUs": {quotaOf("q", amounts{"requests.nvidia.com/gpu": "8"}, amounts{"requests.nvidia.com/gpu": "5"}),
			of("nvidia.com/gpu", 4, raydemand.Bundle{"gpu": raydemand.One})},
		"CPUs": {quotaOf("q", amounts{"cpu": "20"}, amounts{"cpu": "10"}),
			of("cpu", 14, raydemand.Bundle{"gpu": raydemand.Whole(4), "cpu": raydemand.Whole(2)})},
		"pods": {quotaOf("q", amounts{"pods": "6"}, amounts{"pods": "4"}),
			of("pods", 3, raydemand.Bundle{"gpu": raydemand.One, "cpu": raydemand.One})},
		"what the own pods use is not counted yet": {quotaOf("q", amounts{"count/pods": "6"}, nil),
			of("count/pods", 6, raydemand.Bundle{"gpu": raydemand.One, "cpu": raydemand.One})},
		"others use more than there may be": {quotaOf("q", amounts{"requests.nvidia.com/gpu": "2"}, amounts{"requests.nvidia.com/gpu": "5"}),
			of("nvidia.com/gpu", 0, raydemand.Bundle{"gpu": raydemand.One})},
		"limits": {quotaOf("q", amounts{"limits.memory": "20"}, amounts{"limits.memory": "12"}),
			of("limits.memory", 16, raydemand.Bundle{"gpu": raydemand.Whole(8)})},
		// An Amount holds the bytes of 838 TiB: the memory that a namespace of a large fleet uses may be more.
		"more memory than an amount": {quotaOf("q", amounts{"limits.memory": "2Pi"}, amounts{"limits.memory": "2047Ti"}),
			of("limits.memory", 1<<40+8, raydemand.Bundle{"gpu": raydemand.Whole(8)})},
		"storage, and what no group requests": {quotaOf("q", amounts{"limits.nvidia.com/gpu": "1", "nvidia.com/gpu": "1", "requests.storage": "1Gi", "services": "1", "requests.amd.com/gpu": "0"}, nil), nil},
		"with scopes":                         {scoped, nil},
		"containers without a limit": {quotaOf("q", amounts{"limits.cpu": "20"}, nil), []landing.Quota{{
			Name: "ResourceQuota q, for pods that do not state limits.cpu,", Resource: "pods", PodTakes: raydemand.Bundle{"cpu": raydemand.One},
			Why: "the API server refuses them: set limits.cpu of w, side"}}},
	} {
		w := newQuotas(nil, nil, slog.New(slog.DiscardHandler), func(string) {})
		w.Store("").Put(c.quota)
		w.defaultsKnown = func(string) bool { return true }
		got := cluster()
		w.AddTo(&got)
		if diff := cmp.Diff(c.want, got.NamespaceQuotas); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		elsewhere := cluster()
		elsewhere.Key.Namespace = "other"
		if w.AddTo(&elsewhere); len(elsewhere.NamespaceQuotas) > 0 {
			t.Errorf("%s: it counts in another namespace", name)
		}
	}
}

// A running worker that is newer than the quota shows that something states the value, for example an admission webhook,
// and LimitRanges that are unknown may.
func TestAQuotaOfWhatPodsDoNotStateMayBeDisproved(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	quota, changed, status := quotaOf("q", amounts{"limits.cpu": "20"}, nil), metav1.NewTime(at.Add(time.Hour)), metav1.NewTime(at.Add(9*time.Hour))
	quota.CreationTimestamp = metav1.NewTime(at)
	quota.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &changed}, {Time: &status, Subresource: "status"}}
	for _, c := range []struct {
		worker nodepool.Worker
		known  bool
		bounds int
	}{
		{nodepool.Worker{Group: "g", Running: true, CreatedAt: at.Add(2 * time.Hour)}, true, 0},
		{nodepool.Worker{Group: "g", Running: true, CreatedAt: at.Add(time.Minute)}, true, 1},
		{nodepool.Worker{Group: "g", CreatedAt: at.Add(2 * time.Hour)}, true, 1},
		{nodepool.Worker{Group: "other", Running: true, CreatedAt: at.Add(2 * time.Hour)}, true, 1},
		{nodepool.Worker{}, false, 0},
	} {
		w := newQuotas(nil, nil, slog.New(slog.DiscardHandler), func(string) {})
		w.Store("").Put(quota)
		w.defaultsKnown = func(string) bool { return c.known }
		cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, Workers: []nodepool.Worker{c.worker},
			Groups: []nodepool.WorkerGroup{{Name: "g", Unstated: map[string][]string{"limits.cpu": {"w"}}}}}
		if w.AddTo(&cluster); len(cluster.NamespaceQuotas) != c.bounds {
			t.Errorf("with %+v, LimitRanges known %v: %d quotas, want %d", c.worker, c.known, len(cluster.NamespaceQuotas), c.bounds)
		}
	}
}

// Each new pod changes what is used, and its RayCluster has a cycle anyway.
func TestOnlyWhatMayAllowMoreStartsCycles(t *testing.T) {
	cycles := 0
	w := newQuotas(nil, []string{"ml"}, slog.New(slog.DiscardHandler), func(string) { cycles++ })
	quotas := w.Store("ml")
	for i, step := range []struct {
		do   func()
		want int
	}{
		{func() { quotas.Put(quotaOf("q", amounts{"pods": "5"}, amounts{"pods": "1"})) }, 1},
		{func() { quotas.Put(quotaOf("q", amounts{"pods": "5"}, amounts{"pods": "3"})) }, 1},
		{func() { quotas.Put(quotaOf("q", amounts{"pods": "5"}, amounts{"pods": "2"})) }, 2},
		{func() { quotas.Put(quotaOf("q", amounts{"pods": "6"}, amounts{"pods": "2"})) }, 3},
		{func() { w.Unread("ml", "forbidden") }, 4},
		{func() { w.Unread("ml", "forbidden") }, 4},
		{func() { quotas.ReplaceAll([]*corev1.ResourceQuota{quotaOf("q", amounts{"pods": "6"}, nil)}, "") }, 5},
		{func() { quotas.Remove(quotaOf("q", nil, nil)) }, 6},
	} {
		if step.do(); cycles != step.want {
			t.Errorf("step %d: %d cycles, want %d", i, cycles, step.want)
		}
	}
}

// The API server gives a container without requests the defaults of a LimitRange, and refuses one above its maximum.
func TestALimitRangeCounts(t *testing.T) {
	const template = `template: {spec: {containers: [{name: w, image: i, resources: {limits: {cpu: 2}}}, {name: sidecar, image: i}]}}`
	object := clusterOf(t, `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: llm, namespace: ml, uid: u, resourceVersion: "7"}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: h, image: i}]}}}
  workerGroupSpecs: [{groupName: g, maxReplicas: 4, `+template+`}]
`)
	decodes := newDecodeCache(sharing.Reader{})
	w := newLimits(nil, nil, slog.New(slog.DiscardHandler), decodes.dropNamespace)
	decodes.limits = w.of
	limited := func(text string) *corev1.LimitRange {
		limits := &corev1.LimitRange{}
		must(t, yaml.Unmarshal([]byte("metadata: {name: team, namespace: ml}\nspec: {limits: ["+text+"]}"), limits))
		return limits
	}
	for _, c := range []struct {
		limits      string
		cpu, memory int64
		refused     string
	}{
		{"{type: Pod, max: {cpu: 1}}", 2, 0, "containers, LimitRange team refuses every pod of the group: for cpu in limits of all containers together, it wants at most 1"},
		{"{type: Container, defaultRequest: {cpu: 3, memory: 4}}", 5, 8, ""},
		{"{type: Container, default: {cpu: 1}, max: {cpu: 2}}", 3, 0, ""},
		{"{type: Container, max: {cpu: 1}}", 3, 0, "containers[0].resources.limits.cpu, LimitRange team refuses every pod of the group: at most 1"},
		{"{type: Container, min: {memory: 4}, default: {memory: 3}}", 2, 6, "containers[0].resources.requests.memory, LimitRange team refuses every pod of the group: at least 4"},
	} {
		w.Store("").Put(limited(c.limits))
		read := decodes.decode(object)
		g := read.Cluster.Groups[0]
		if got := g.Pod.Requests; got["cpu"] != raydemand.Whole(c.cpu) || got["memory"] != raydemand.Whole(c.memory) {
			t.Errorf("%s: pods request %v, want %d CPUs and %d bytes", c.limits, got, c.cpu, c.memory)
		}
		said := ""
		for _, f := range read.Findings {
			if f.Code == decode.PodsRefused && said == "" {
				said = strings.TrimPrefix(f.Field, "spec.workerGroupSpecs[0].template.spec.") + ", " + f.Why
			}
		}
		if said != c.refused || g.Broken != (c.refused != "") {
			t.Errorf("%s: closed %v, says %q, want %q", c.limits, g.Broken, said, c.refused)
		}
	}
	w.Store("").Put(limited("{type: Container, default: {cpu: 2}}"))
	if got := decodes.decode(object).Cluster.Groups[0].Unstated; len(got["limits.cpu"]) > 0 || len(got["limits.memory"]) != 2 {
		t.Errorf("with a default of cpu, containers lack %v", got)
	}
	w.Store("").Remove(limited("{type: Container, max: {cpu: 1}}"))
	g := decodes.decode(object).Cluster.Groups[0]
	if g.Broken || !slices.Equal(g.Unstated["limits.cpu"], []string{"sidecar"}) {
		t.Errorf("a LimitRange that is gone counts: closed %v, containers lack %v", g.Broken, g.Unstated)
	}
}
