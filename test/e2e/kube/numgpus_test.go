package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
)

// twoKinds is a set of MIG instances of two kinds. The operator counts only the first kind, so it passes 2 instead of
// 3.
var twoKinds = map[string]int64{"nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-3g.20gb": 1}

// syncOf addresses a write of GPU numbers to the version of the cluster that was read.
func syncOf(cluster nodepool.Cluster, gpus int64, groups ...string) nodepool.NumGPUsChange {
	change := nodepool.NumGPUsChange{Cluster: cluster.Key, UID: cluster.UID, Generation: cluster.Generation}
	for _, name := range groups {
		group, _ := cluster.Group(name)
		change.Targets = append(change.Targets, nodepool.NumGPUsTarget{Group: name, Index: group.Index, Field: group.GPUs.Field, GPUs: raydemand.Whole(gpus)})
	}
	return change
}

// TestASyncRestartsNoPodAndReachesTheNext checks that a sync affects only new pods. Unless the strategy is Recreate,
// the operator keeps running pods and passes the number to the pods that it creates later. The test uses both places
// for the number: rayStartParams, and the field resources if the group has it.
func TestASyncRestartsNoPodAndReachesTheNext(t *testing.T) {
	t.Parallel()
	s := stage(t, "sync")
	manifest := rig.Cluster{Namespace: s.namespace, Name: "llm", Groups: []rig.Group{
		{Name: "params", Replicas: 1, Max: 9, Devices: twoKinds},
		{Name: "field", Replicas: 1, Max: 9, Devices: map[string]int64{"nvidia.com/gpu.shared": 1}},
		{Name: "other", Replicas: 1, Max: 9},
	}}.Manifest()
	groups, _, _ := unstructured.NestedSlice(manifest.Object, "spec", "workerGroupSpecs")
	groups[1].(map[string]any)["resources"] = map[string]any{"CPU": "1"}
	must(t, unstructured.SetNestedSlice(manifest.Object, groups, "spec", "workerGroupSpecs"))
	s.createAs(manifest)
	m := s.manager(kube.Options{})
	s.until("a worker of each group", func() bool { return len(s.read(m, "llm").Workers) == 3 })
	before := s.pods("llm")
	if got := s.numGPUs("llm"); got["params"] != "2" || got["field"] != "" {
		t.Fatalf("the operator passes %v, want 2 and none", got)
	}

	cluster := s.read(m, "llm")
	change := syncOf(cluster, 3, "params")
	change.Targets = append(change.Targets, syncOf(cluster, 1, "field").Targets...)
	generation := s.sync(m, change)
	after, err := m.Cluster(t.Context(), s.key("llm"))
	if err != nil || after.Generation != generation {
		t.Fatalf("read after the write: generation %d, %v; want %d", after.Generation, err, generation)
	}
	for group, want := range map[string]raydemand.Amount{"params": raydemand.Whole(3), "field": raydemand.One} {
		if g, _ := after.Group(group); g.GPUs.Derived == nil || *g.GPUs.Derived != want || g.GPUs.DeclaredBy != g.GPUs.Field {
			t.Errorf("group %s is read back as %+v", group, g.GPUs)
		}
	}

	// Pods that exist after the sync show that the operator has processed this spec.
	s.change(m, s.targets(after, map[string]int{"params": 1, "field": 1, "other": 1}))
	s.until("a second worker of each group", func() bool { return len(s.pods("llm")) == len(before)+3 })
	now := s.pods("llm")
	for name, uid := range before {
		if now[name] != uid {
			t.Errorf("pod %s was restarted or deleted", name)
		}
	}
	for name := range before {
		delete(now, name)
	}
	want := map[string]string{"params": "3", "field": "1", "other": ""}
	for name := range now {
		pod, err := lab.Client().CoreV1().Pods(s.namespace).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		if group := pod.Labels["ray.io/group"]; flagGPUs(pod) != want[group] {
			t.Errorf("new pod %s passes %q, want %q", name, flagGPUs(pod), want[group])
		}
	}
}

// pods returns the names and UIDs of all pods of a cluster, including the head, that are not being deleted.
func (s *scene) pods(cluster string) map[string]types.UID {
	s.Helper()
	list, err := lab.Client().CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "ray.io/cluster=" + cluster})
	must(s, err)
	uids := map[string]types.UID{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			uids[pod.Name] = pod.UID
		}
	}
	return uids
}

// numGPUs returns the number that the newest pod of each group passes.
func (s *scene) numGPUs(cluster string) map[string]string {
	s.Helper()
	list, err := lab.Client().CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "ray.io/cluster=" + cluster})
	must(s, err)
	passed := map[string]string{}
	for i := range list.Items {
		passed[list.Items[i].Labels["ray.io/group"]] = flagGPUs(&list.Items[i])
	}
	return passed
}

// flagGPUs returns the number that the pod's command line passes to `ray start`, or "".
func flagGPUs(pod *corev1.Pod) string {
	for word := range strings.FieldsSeq(strings.Join(pod.Spec.Containers[0].Args, " ")) {
		if number, found := strings.CutPrefix(word, "--num-gpus="); found {
			return number
		}
	}
	return ""
}

// sync writes the change. If the operator has written its status in the meantime, sync reads again and retries.
func (s *scene) sync(m *kube.Manager, change nodepool.NumGPUsChange) int64 {
	s.Helper()
	var generation int64
	s.until("num-gpus to be written", func() bool {
		var err error
		generation, err = m.SyncNumGPUs(s.Context(), change)
		if err != nil && !errors.Is(err, nodepool.ErrConflict) {
			s.Fatal(err)
		}
		return err == nil
	})
	return generation
}

// refused asserts that the write fails with that code, and that nothing was written and no pod changed.
func (s *scene) refused(m *kube.Manager, name, code string) {
	s.Helper()
	before, pods := s.get(name).GetGeneration(), s.pods(name)
	cluster, err := m.Fresh(s.Context(), s.key(name))
	must(s, err)
	_, err = m.SyncNumGPUs(s.Context(), syncOf(cluster, 3, "gpu"))
	var refusal *nodepool.SyncRefusal
	if !errors.As(err, &refusal) || refusal.Code != code || !errors.Is(err, nodepool.ErrSyncRefused) {
		s.Errorf("%s: error is %v, want a refusal as %s", name, err, code)
	}
	if after := s.get(name).GetGeneration(); after != before {
		s.Errorf("%s: generation went from %d to %d: something was written", name, before, after)
	}
	now := s.pods(name)
	for pod, uid := range pods {
		if now[pod] != uid {
			s.Errorf("%s: pod %s was restarted", name, pod)
		}
	}
}

func TestASyncThatWouldRestartEverythingIsRefused(t *testing.T) {
	t.Parallel()
	s := stage(t, "recreate")
	s.create("llm", rig.Group{Name: "gpu", Replicas: 1, Max: 9, Devices: twoKinds})
	s.patch("llm", types.MergePatchType, `{"spec":{"upgradeStrategy":{"type":"Recreate"}}}`)
	m := s.manager(kube.Options{})
	s.until("the pods to be made", func() bool { return len(s.pods("llm")) == 2 })
	s.refused(m, "llm", nodepool.SyncRecreate)

	// This shows why Heliostat refuses the write: the same write by a user deletes the head and the worker.
	before := s.pods("llm")
	s.patch("llm", types.JSONPatchType, `[{"op":"add","path":"/spec/workerGroupSpecs/0/rayStartParams/num-gpus","value":"3"}]`)
	s.until("all pods to be made anew", func() bool {
		for pod, uid := range s.pods("llm") {
			if before[pod] == uid {
				return false
			}
		}
		return true
	})
}

// TestASyncAgainstWhoAppliesTheGroupsIsRefused covers a program that applies the manifest. It keeps the ownership of
// parts of the spec when a patch of replicas takes over the list of groups. The API server treats that list as one
// value (docs/reference/facts.md#owner-of-the-worker-groups).
func TestASyncAgainstWhoAppliesTheGroupsIsRefused(t *testing.T) {
	t.Parallel()
	s := stage(t, "applied")
	m := s.manager(kube.Options{})
	apply := func(name, manager string) *unstructured.Unstructured {
		t.Helper()
		manifest := rig.Cluster{Namespace: s.namespace, Name: name, Groups: []rig.Group{{Name: "gpu", Max: 9, Devices: twoKinds}}}.Manifest()
		must(t, s.serverSide(manager, manifest, true))
		return s.get(name)
	}
	apply("gitops", "argocd-controller")
	s.refused(m, "gitops", nodepool.SyncFieldManaged)

	s.change(m, s.targets(s.read(m, "gitops"), map[string]int{"gpu": 1}))
	owners := listOwners(s.get("gitops"))
	if !slices.Equal(owners, []string{"heliostat"}) {
		t.Errorf("after a patch of replicas the list belongs to %v, want heliostat alone", owners)
	}
	s.refused(m, "gitops", nodepool.SyncFieldManaged)

	// The next apply reverts all of it, so it would remove a written number.
	s.patch("gitops", types.JSONPatchType, `[{"op":"add","path":"/spec/workerGroupSpecs/0/rayStartParams/num-gpus","value":"3"}]`)
	if params, _, _ := unstructured.NestedMap(firstGroup(t, apply("gitops", "argocd-controller")), "rayStartParams"); len(params) != 0 {
		t.Errorf("rayStartParams are %v after the apply", params)
	}

	// A user who creates or edits the object owns the list too, but does not revert it.
	s.create("by-hand", rig.Group{Name: "gpu", Max: 9, Devices: twoKinds})
	s.sync(m, syncOf(s.read(m, "by-hand"), 3, "gpu"))
}

// listOwners returns the field managers that own the list of worker groups.
func listOwners(object *unstructured.Unstructured) []string {
	var owners []string
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 != nil && strings.Contains(string(entry.FieldsV1.Raw), `"f:workerGroupSpecs"`) && entry.Subresource == "" {
			owners = append(owners, entry.Manager)
		}
	}
	return owners
}

func firstGroup(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	groups, _, err := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
	if err != nil || len(groups) == 0 {
		t.Fatalf("no worker groups: %v", err)
	}
	return groups[0].(map[string]any)
}
