package chart

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/rig"
)

// The two installs watch the same cluster, so they run one after the other.

// TestTheFleetIsInstalledUpgradedAndRolledBackWithExactlyItsRights installs the chart with its default values in a
// namespace that enforces the restricted Pod Security Standard, and scales a RayCluster with real Ray.
func TestTheFleetIsInstalledUpgradedAndRolledBackWithExactlyItsRights(t *testing.T) {
	namespace(t, "heliostat", nil)
	enforce(t, "heliostat")
	namespace(t, "ml", nil)
	r := newRelease(t, "heliostat", "heliostat")
	r.install("{mode: managed, extraArgs: [--max-in-flight=200]}")
	api := r.rest()
	certificate := r.certificate()

	s := newScene(t, "ml", "llm")
	viewer, editor, stranger := user(t, "ml", "viewer", "view"), user(t, "ml", "editor", "edit"), user(t, "ml", "stranger", "")
	s.callersMay(api, viewer, editor, stranger)
	s.scales(api, editor)
	if text := r.scrape(8080, "/metrics"); !strings.Contains(text, "\nheliostat_cluster_managed{") {
		t.Errorf("metrics are:\n%s", text)
	}

	s.answersOnAll(api, 2, viewer)
	s.outlivesItsLeader(api, viewer)
	s.answersOnAll(api, 2, viewer)

	r.upgrade("replicas: 3\nlogging: {level: debug}\n")
	s.answersOnAll(api, 3, viewer)
	budget, err := lab.Client().PolicyV1().PodDisruptionBudgets("heliostat").Get(t.Context(), "heliostat", metav1.GetOptions{})
	if err != nil || budget.Spec.MaxUnavailable.String() != "1" {
		t.Errorf("the budget: %v, %v", budget.Spec.MaxUnavailable, err)
	}
	if !slices.Contains(r.deployment().Spec.Template.Spec.Containers[0].Args, "--max-in-flight=200") {
		t.Error("the upgrade has lost a value")
	}
	if !bytes.Equal(certificate, r.certificate()) {
		t.Error("the upgrade made another certificate, which nobody trusts")
	}

	r.rollback(1)
	s.answersOnAll(api, 2, viewer)
	r.upgrade("replicas: 1\n")
	if _, err := lab.Client().PolicyV1().PodDisruptionBudgets("heliostat").Get(t.Context(), "heliostat", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the budget is still there: %v", err)
	}
	s.answersOnAll(api, 1, viewer)
	exactly(t, "heliostat", "heliostat", spared(""))

	r.uninstall()
	if left := r.remains(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	s.remove()
}

// TestAnInstallForOneNamespaceLivesWithRolesThere installs the chart for its own namespace only.
func TestAnInstallForOneNamespaceLivesWithRolesThere(t *testing.T) {
	namespace(t, "team", nil)
	namespace(t, "others", nil)
	elsewhere := newScene(t, "others", "hidden")
	elsewhere.suspend() // it is only to be hidden
	r := newRelease(t, "scaler", "team")
	r.install("{mode: managed, singleNamespaceInstall: true}")
	api := r.rest()

	s := newScene(t, "team", "llm")
	viewer, editor, stranger := user(t, "team", "viewer", "view"), user(t, "team", "editor", "edit"), user(t, "team", "stranger", "")
	s.callersMay(api, viewer, editor, stranger)
	s.scales(api, editor)
	if all := names(t, api.want(http.StatusOK, viewer, http.MethodGet, "/v1/namespaces/team/rayclusters", "")); !slices.Equal(all, []string{"team/llm"}) {
		t.Errorf("it knows %v", all)
	}
	exactly(t, "team", "scaler-heliostat", spared("team"), ofAllNamespaces...)
	elsewhere.remove()
	s.remove()
}

// ofAllNamespaces are calls that an install for one namespace makes without the right.
var ofAllNamespaces = []string{
	`watch pods in ""`, `list pods in ""`, `watch resourceslices.resource.k8s.io in ""`, `list resourceslices.resource.k8s.io in ""`,
	`watch resourceclaims.resource.k8s.io in ""`, `list resourceclaims.resource.k8s.io in ""`,
	`watch deviceclasses.resource.k8s.io in ""`, `list deviceclasses.resource.k8s.io in ""`,
	`watch resourceclaimtemplates.resource.k8s.io in ""`, `list resourceclaimtemplates.resource.k8s.io in ""`,
}

// spared returns the rights that these tests do not use, in the whole cluster, or in one namespace if the install has
// Roles there.
func spared(namespace string) map[right]excuse {
	kueue := excuse{why: "Kueue is read where it is installed, see test/neighbours"}
	lists := excuse{why: "caches list before they watch where the API server does not stream lists to them"}
	rights := map[right]excuse{
		{"patch", "events", namespace}:                        {why: "an Event that happens again is counted up; within minutes none may", mayBeUsed: true},
		{"list", "events", namespace}:                         lists,
		{"list", "rayclusters.ray.io", namespace}:             lists,
		{"list", "resourcerequests.heliostat.dev", namespace}: lists,
		{"list", "resourcequotas", namespace}:                 lists,
		{"list", "limitranges", namespace}:                    lists,
		{"get", "rayjobs.ray.io", namespace}:                  {why: "owners are read by RayClusters that have one, see test/neighbours"},
		{"get", "rayservices.ray.io", namespace}:              {why: "owners are read by RayClusters that have one, see test/neighbours"},
		{"list", "workloads.kueue.x-k8s.io", namespace}:       kueue,
		{"watch", "workloads.kueue.x-k8s.io", namespace}:      kueue,
		{"list", "clusterqueues.kueue.x-k8s.io", ""}:          kueue,
		{"watch", "clusterqueues.kueue.x-k8s.io", ""}:         kueue,
		{"list", "cohorts.kueue.x-k8s.io", ""}:                kueue,
		{"watch", "cohorts.kueue.x-k8s.io", ""}:               kueue,
		{"list", "nodes", ""}:                                 lists,
		{"list", "nodeclaims.karpenter.sh", ""}:               lists,
		{"get", "namespaces", ""}:                             {why: "read anew right before a worker is taken away", mayBeUsed: true},
		{"get", "namespaces", namespace}:                      {why: "where no ClusterRole lets namespaces be listed, this is polled", mayBeUsed: true},
	}
	rights[right{"delete", "leases.coordination.k8s.io", cmp.Or(namespace, "heliostat")}] = excuse{
		why: "a leader removes the Lease of a shard that has ended without leaving; there are no shards here",
	}
	if namespace != "" {
		rights[right{"list", "events", "default"}] = lists
		return rights
	}
	rights[right{"list", "namespaces", ""}] = lists
	for _, resource := range []string{
		"resourceslices", "resourceclaims", "deviceclasses", "resourceclaimtemplates",
	} {
		rights[right{"list", resource + ".resource.k8s.io", ""}] = lists
	}
	return rights
}

// enforce makes a namespace accept only pods that meet the restricted standard.
func enforce(t *testing.T, name string) {
	t.Helper()
	client := lab.Client().CoreV1().Namespaces()
	object, err := client.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	metav1.SetMetaDataLabel(&object.ObjectMeta, "pod-security.kubernetes.io/enforce", "restricted")
	if _, err := client.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// certificate returns the certificate that the API presents.
func (r *release) certificate() []byte {
	r.Helper()
	secret, err := lab.Client().CoreV1().Secrets(r.namespace).Get(r.Context(), r.deployment().Name+"-tls", metav1.GetOptions{})
	must(r, err)
	return secret.Data[corev1.TLSCertKey]
}

var resourceRequests = schema.GroupVersionResource{Group: "heliostat.dev", Version: "v1alpha1", Resource: "resourcerequests"}

// scene is one RayCluster with real Ray, whose head accepts only calls with its token.
type scene struct {
	*testing.T
	namespace, name string
}

func newScene(t *testing.T, namespace, name string) *scene {
	t.Helper()
	manifest := rig.Cluster{Namespace: namespace, Name: name, IdleSeconds: 2, Groups: []rig.Group{{Name: "cpu", Max: 3}}}.Manifest()
	must(t, unstructured.SetNestedField(manifest.Object, "token", "spec", "authOptions", "mode"))
	if _, err := lab.Dynamic().Resource(rig.RayClusters).Namespace(namespace).Create(t.Context(), manifest, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return &scene{t, namespace, name}
}

// suspend lets the operator delete all pods, or make none.
func (s *scene) suspend() {
	s.Helper()
	_, err := lab.Dynamic().Resource(rig.RayClusters).Namespace(s.namespace).Patch(s.Context(), s.name, types.MergePatchType,
		[]byte(`{"spec": {"suspend": true}}`), metav1.PatchOptions{})
	must(s, err)
}

// remove deletes the RayCluster and waits until its pods are gone.
func (s *scene) remove() {
	s.Helper()
	must(s, lab.Dynamic().Resource(rig.RayClusters).Namespace(s.namespace).Delete(s.Context(), s.name, metav1.DeleteOptions{}))
	until(s.T, "the pods of "+s.name+" to go", func() bool { return s.pods("") == 0 })
}

func (s *scene) path() string {
	return "/v1/namespaces/" + s.namespace + "/rayclusters/" + s.name
}

// pods counts the pods of a kind, or all pods if kind is "".
func (s *scene) pods(kind string) int {
	s.Helper()
	selector := "ray.io/cluster=" + s.name
	if kind != "" {
		selector += ",ray.io/node-type=" + kind
	}
	list, err := lab.Client().CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: selector})
	must(s, err)
	return len(list.Items)
}

// callersMay asserts what the chart's roles add to Kubernetes' own: users with the role view may read, and users with
// the role edit may send requests.
func (s *scene) callersMay(api caller, viewer, editor, stranger string) {
	s.Helper()
	const nothing = `{}`
	api.want(http.StatusOK, viewer, http.MethodGet, s.path(), "")
	api.want(http.StatusUnauthorized, "", http.MethodGet, s.path(), "")
	api.want(http.StatusForbidden, stranger, http.MethodGet, s.path(), "")
	api.want(http.StatusForbidden, viewer, http.MethodPost, s.path()+"/request_resources", nothing)
	if status, answer := api.call(editor, http.MethodPost, s.path()+"/request_resources", nothing); status >= http.StatusMultipleChoices {
		s.Errorf("who may edit may not request: status %d, %s", status, answer)
	}
	api.want(http.StatusForbidden, editor, http.MethodPut, s.path()+"/freeze", "")
}

// scales requests a worker in each possible way, one after the other, and then requests none.
func (s *scene) scales(api caller, editor string) {
	s.Helper()
	api.want(http.StatusOK, editor, http.MethodPost, s.path()+"/request_resources", `{"num_cpus":1}`)
	s.workers(api, editor, 1)

	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "heliostat.dev/v1alpha1", "kind": "ResourceRequest", "metadata": map[string]any{"name": "kubectl"},
		"spec": map[string]any{
			"rayCluster": s.name, "owner": "somebody", "holdUntilDeleted": true,
			"bundles": []any{map[string]any{"resources": map[string]any{"CPU": int64(1)}}},
		},
	}}
	client := lab.Dynamic().Resource(resourceRequests).Namespace(s.namespace)
	if _, err := client.Create(s.Context(), request, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	until(s.T, "the request to be satisfied", func() bool {
		now, err := client.Get(s.Context(), "kubectl", metav1.GetOptions{})
		must(s, err)
		state, _, _ := unstructured.NestedString(now.Object, "status", "state")
		return state == "Satisfied" && len(now.GetOwnerReferences()) == 1
	})
	mine := s.path() + "/request_resources/mine"
	api.want(http.StatusCreated, editor, http.MethodPut, mine, `{"leaseSeconds":3600,"bundles":[{"resources":{"CPU":1}}]}`)
	api.want(http.StatusNoContent, editor, http.MethodDelete, mine, "")
	must(s, client.Delete(s.Context(), "kubectl", metav1.DeleteOptions{}))
	api.want(http.StatusNoContent, editor, http.MethodDelete, s.path()+"/request_resources", "")
	s.workers(api, editor, 0)
}

// workers waits until the RayCluster has the given number of workers.
func (s *scene) workers(api caller, token string, want int) {
	s.Helper()
	for deadline := time.Now().Add(patience); s.pods("worker") != want; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			_, told := api.call(token, http.MethodGet, s.path(), "")
			s.Fatalf("there are %d workers, want %d; it says %s\n%s", s.pods("worker"), want, told, api.release.state())
		}
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
