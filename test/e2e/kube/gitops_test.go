package kube

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/test/rig"
)

// Names under which the real ones write: Argo CD common/common.go, Flux kustomize-controller main.go.
const (
	argoCD = "argocd-controller"
	flux   = "kustomize-controller"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// inGit is a manifest as people keep it in Git.
func inGit(s *scene, change func(group map[string]any)) *unstructured.Unstructured {
	s.Helper()
	manifest := rig.Cluster{Namespace: s.namespace, Name: "llm", Annotations: map[string]string{"heliostat.dev/mode": "managed"},
		Groups: []rig.Group{{Name: "gpu", Max: 9}}}.Manifest()
	groups, _, _ := unstructured.NestedSlice(manifest.Object, "spec", "workerGroupSpecs")
	change(groups[0].(map[string]any))
	must(s, unstructured.SetNestedSlice(manifest.Object, groups, "spec", "workerGroupSpecs"))
	return manifest
}

func withoutReplicas(group map[string]any) { delete(group, "replicas") }

// serverSide applies a manifest as Flux does, and as Argo CD does with ServerSideApply=true: by force.
func (s *scene) serverSide(manager string, manifest *unstructured.Unstructured, force bool) error {
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	_, err = lab.Dynamic().Resource(rig.RayClusters).Namespace(s.namespace).Patch(s.Context(), manifest.GetName(), types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	return err
}

// clientSide applies a manifest as Argo CD does by default and kubectl does: by the difference between the manifest, the
// last one that was applied, and the object. For a custom resource, that is a merge patch, which replaces whole lists.
func (s *scene) clientSide(manager string, manifest *unstructured.Unstructured) error {
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	annotated := manifest.DeepCopy()
	annotations := annotated.GetAnnotations()
	annotations[lastApplied] = string(text)
	annotated.SetAnnotations(annotations)
	rayClusters := lab.Dynamic().Resource(rig.RayClusters).Namespace(s.namespace)
	live, err := rayClusters.Get(s.Context(), manifest.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = rayClusters.Create(s.Context(), annotated, metav1.CreateOptions{FieldManager: manager})
	}
	if err != nil || live == nil || live.GetName() == "" {
		return err
	}
	modified, err := json.Marshal(annotated)
	if err != nil {
		return err
	}
	current, err := json.Marshal(live)
	if err != nil {
		return err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(live.GetAnnotations()[lastApplied]), modified, current)
	if err != nil || bytes.Equal(patch, []byte("{}")) {
		return err
	}
	_, err = rayClusters.Patch(s.Context(), manifest.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	return err
}

// owners are the field managers that own the list of worker groups.
func (s *scene) owners() []string {
	s.Helper()
	var owners []string
	for _, entry := range s.get("llm").GetManagedFields() {
		if entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.Raw, []byte(`"f:workerGroupSpecs"`)) {
			owners = append(owners, entry.Manager)
			if !bytes.Contains(entry.FieldsV1.Raw, []byte(`"f:workerGroupSpecs":{}`)) {
				s.Errorf("%s owns parts of the list of worker groups: %s", entry.Manager, entry.FieldsV1.Raw)
			}
		}
	}
	return owners
}

// gpu returns the only worker group as stored.
func (s *scene) gpu() map[string]any {
	s.Helper()
	groups, _, err := unstructured.NestedSlice(s.get("llm").Object, "spec", "workerGroupSpecs")
	if err != nil || len(groups) != 1 {
		s.Fatalf("groups %v, %v", groups, err)
	}
	return groups[0].(map[string]any)
}

// TestTheListOfWorkerGroupsHasOneOwner observes docs/reference/facts.md#owner-of-the-worker-groups.
func TestTheListOfWorkerGroupsHasOneOwner(t *testing.T) {
	t.Parallel()
	s := stage(t, "owner")
	manifest := inGit(s, withoutReplicas)
	must(s, s.serverSide(flux, manifest, true))
	if replicas := s.gpu()["replicas"]; replicas != int64(0) {
		t.Errorf("replicas are %v without a value, want the default of the CRD, 0", replicas)
	}
	m := s.manager(kube.Options{})
	must(s, s.grow(m, 2))
	if owners := s.owners(); !slices.Equal(owners, []string{nodepool.FieldManager}) {
		t.Errorf("after a patch of replicas, %v own the worker groups, want heliostat alone", owners)
	}
	err := s.serverSide(flux, manifest, false)
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "heliostat"`) || !strings.Contains(err.Error(), ".spec.workerGroupSpecs") {
		t.Errorf("applied without force: %v, want a conflict with heliostat over the whole list", err)
	}
	s.until("two workers", func() bool { return len(s.workers("llm", "gpu")) == 2 })
	leaving := s.workers("llm", "gpu")[:1]
	fresh, err := m.Fresh(t.Context(), s.key("llm"))
	must(s, err)
	_, err = m.Apply(t.Context(), s.targets(fresh, nil, leaving...))
	must(s, err)

	must(s, s.serverSide(flux, manifest, true))
	if group := s.gpu(); group["replicas"] != int64(0) || group["scaleStrategy"] != nil {
		t.Errorf("applied by force: replicas %v, scaleStrategy %v, want the default 0 and none", group["replicas"], group["scaleStrategy"])
	}
	if owners := s.owners(); !slices.Equal(owners, []string{flux}) {
		t.Errorf("applied by force: %v own the worker groups, want Flux alone", owners)
	}
	s.until("no workers, though nobody named them", func() bool { return len(s.workers("llm", "gpu")) == 0 })
}

// grow raises replicas of the group gpu.
func (s *scene) grow(m *kube.Manager, pods int) error {
	_, err := m.Apply(s.Context(), s.targets(s.read(m, "llm"), map[string]int{"gpu": pods}))
	return err
}

// TestAManifestThatTakesTheLiveReplicasLeavesThemAlone does what Argo CD does with RespectIgnoreDifferences, and Flux
// with spec.ignore: it writes the live values of the ignored fields into the manifest before it applies it.
func TestAManifestThatTakesTheLiveReplicasLeavesThemAlone(t *testing.T) {
	t.Parallel()
	for name, apply := range map[string]func(*scene, *unstructured.Unstructured) error{
		"server-side": func(s *scene, manifest *unstructured.Unstructured) error { return s.serverSide(flux, manifest, true) },
		"client-side": func(s *scene, manifest *unstructured.Unstructured) error { return s.clientSide(argoCD, manifest) },
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t, "ignored-"+name)
			must(s, apply(s, inGit(s, func(map[string]any) {})))
			m := s.manager(kube.Options{})
			must(s, s.grow(m, 2))
			s.until("two workers", func() bool { return len(s.workers("llm", "gpu")) == 2 })
			workers, live := s.workers("llm", "gpu"), s.gpu()
			must(s, apply(s, inGit(s, func(group map[string]any) {
				group["replicas"], group["maxReplicas"] = live["replicas"], int64(5)
				if live["scaleStrategy"] != nil {
					group["scaleStrategy"] = live["scaleStrategy"]
				}
			})))
			if group := s.gpu(); group["replicas"] != int64(2) || group["maxReplicas"] != int64(5) {
				t.Errorf("replicas %v and maxReplicas %v, want 2 and the manifest's 5", group["replicas"], group["maxReplicas"])
			}
			time.Sleep(2 * time.Second)
			if now := s.workers("llm", "gpu"); !slices.Equal(now, workers) {
				t.Errorf("workers %v, want the same as before: %v", now, workers)
			}
		})
	}
}
