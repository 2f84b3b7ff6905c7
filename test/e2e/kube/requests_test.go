package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/requests"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
)

// apply creates a ResourceRequest as kubectl does.
func (s *scene) apply(name, spec string) error {
	s.Helper()
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion": "heliostat.dev/v1alpha1", "kind": "ResourceRequest", "metadata": {"name": %q, "namespace": %q}, "spec": %s}`, name, s.namespace, spec)
	if err := json.Unmarshal([]byte(text), object); err != nil {
		s.Fatal(err)
	}
	_, err := lab.Dynamic().Resource(rig.ResourceRequests).Namespace(s.namespace).Create(s.Context(), object, metav1.CreateOptions{})
	return err
}

func (s *scene) request(name string) *unstructured.Unstructured {
	s.Helper()
	object, err := lab.Dynamic().Resource(rig.ResourceRequests).Namespace(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return object
}

func allowed(*nodepool.OwnedRequest) error { return nil }

func gpus(id, owner string, key nodepool.ClusterKey, count int64) nodepool.OwnedRequest {
	return nodepool.OwnedRequest{
		Owned: raydemand.Owned{ID: id, Owner: owner, Requests: []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.One / 2}, Count: count}}}, Cluster: key,
	}
}

// TestRequestsWithOwnersOnARealAPIServer starts with an API server without the kind, installs the kind, and removes it
// again. No other test needs this.
func TestRequestsWithOwnersOnARealAPIServer(t *testing.T) {
	s := stage(t, "owned-requests")
	s.create("llm", rig.Group{Name: "gpu", Max: 4})
	manager := s.manager(kube.Options{})
	s.read(manager, "llm")
	owned, key := manager.OwnedRequests(), s.key("llm")

	s.until("word that the kind is not installed", func() bool {
		err := owned.Available(s.namespace)
		return errors.Is(err, nodepool.ErrNoRequests) && strings.Contains(err.Error(), "not installed")
	})
	if _, _, err := owned.Put(t.Context(), gpus("a", "ann", key, 1), allowed); !errors.Is(err, nodepool.ErrNoRequests) {
		t.Errorf("without the kind a request is kept: %v", err)
	}
	if err := rig.InstallCRDs(t.Context(), lab.Dynamic()); err != nil {
		t.Fatal(err)
	}
	s.Cleanup(func() {
		if err := rig.RemoveCRDs(context.Background(), lab.Dynamic()); err != nil {
			s.Error(err)
		}
	})
	s.until("the kind that was installed meanwhile", func() bool { return owned.Available(s.namespace) == nil })

	t.Run("what makes no sense is refused by the API server", func(t *testing.T) { refusals(&scene{t, s.namespace}) })
	t.Run("a request is made, read, replaced, renewed and deleted", func(t *testing.T) { lifetime(&scene{t, s.namespace}, owned) })
	t.Run("what the memory has no room for is refused and says so, and is read again", func(t *testing.T) { overMemory(&scene{t, s.namespace}) })
	t.Run("one that kubectl made is adopted and told what becomes of it", func(t *testing.T) { adoption(&scene{t, s.namespace}, manager) })

	if err := rig.RemoveCRDs(t.Context(), lab.Dynamic()); err != nil {
		t.Fatal(err)
	}
	s.until("word that the kind is gone", func() bool { return owned.Available(s.namespace) != nil })
	if cluster := s.read(manager, "llm"); len(cluster.Owned) > 0 {
		t.Errorf("requests of a kind that is gone still count: %v", cluster.Owned)
	}
}

func refusals(s *scene) {
	const bundles = `"bundles": [{"resources": {"GPU": 1}}]`
	for want, spec := range map[string]string{
		"give one of leaseSeconds and holdUntilDeleted": `{"rayCluster": "llm", "owner": "ann", ` + bundles + `}`,
		"holdUntilDeleted: true":                        `{"rayCluster": "llm", "owner": "ann", "leaseSeconds": 5, "holdUntilDeleted": true, ` + bundles + `}`,
		"leaseSeconds":                                  `{"rayCluster": "llm", "owner": "ann", "leaseSeconds": 0, ` + bundles + `}`,
		"owner":                                         `{"rayCluster": "llm", "leaseSeconds": 5, ` + bundles + `}`,
		"all counts together are at most 10000":         `{"rayCluster": "llm", "owner": "ann", "leaseSeconds": 5, "bundles": [{"resources": {"GPU": 1}, "count": 6000}, {"resources": {"CPU": 1}, "count": 6000}]}`,
		"spec.bundles[0].count":                         `{"rayCluster": "llm", "owner": "ann", "leaseSeconds": 5, "bundles": [{"resources": {"GPU": 1}, "count": 0}]}`,
		"should have at least 1 items":                  `{"rayCluster": "llm", "owner": "ann", "leaseSeconds": 5, "bundles": []}`,
		"a bundle asks for something":                   `{"rayCluster": "llm", "owner": "ann", "leaseSeconds": 5, "bundles": [{"resources": {"GPU": 0}}]}`,
		"spec.bundles[0].resources.GPU":                 `{"rayCluster": "llm", "owner": "ann", "leaseSeconds": 5, "bundles": [{"resources": {"GPU": -1}}]}`,
		"spec.rayCluster":                               `{"rayCluster": "LLM", "owner": "ann", "leaseSeconds": 5, ` + bundles + `}`,
		"isolation":                                     `{"rayCluster": "llm", "owner": "ann", "leaseSeconds": 5, "bundles": [{"slice": {"isolation": "some"}}]}`,
		"renewTime is before the year 9000":             `{"rayCluster": "llm", "owner": "ann", "leaseSeconds": 5, "renewTime": "9999-12-31T23:59:59.999999Z", ` + bundles + `}`,
		"computeFraction":                               `{"rayCluster": "llm", "owner": "ann", "leaseSeconds": 5, "bundles": [{"slice": {"computeFraction": 2}}]}`,
	} {
		if err := s.apply("bad", spec); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			s.Errorf("%s: answered %v, want %q", spec, err, want)
		}
	}
}

// overMemory requests more than a small budget allows, beside a valid owner in the same namespace. It then repeats the
// test with another process.
func overMemory(s *scene) {
	names := make([]any, 400)
	for i := range names {
		names[i] = fmt.Sprintf(`{"resources": {"hostile-%04d": 1}}`, i)
	}
	large := strings.ReplaceAll(strings.Trim(fmt.Sprint(names), "[]"), "} {", "}, {")
	for i := range 6 {
		if err := s.apply(fmt.Sprintf("large-%d", i), `{"rayCluster": "llm", "owner": "mallory", "holdUntilDeleted": true, "bundles": [`+large+`]}`); err != nil {
			s.Fatal(err)
		}
	}
	if err := s.apply("small", `{"rayCluster": "llm", "owner": "ann", "holdUntilDeleted": true, "bundles": [{"resources": {"GPU": 1}}]}`); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		for _, name := range []string{"large-0", "large-1", "large-2", "large-3", "large-4", "large-5", "small"} {
			_ = lab.Dynamic().Resource(rig.ResourceRequests).Namespace(s.namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
		}
	})
	want := map[string]nodepool.Admission{"large-0": nodepool.Admitted, "large-1": nodepool.Admitted, "large-2": nodepool.Refused,
		"large-3": nodepool.Refused, "large-4": nodepool.Refused, "large-5": nodepool.Refused, "small": nodepool.Admitted}
	s.admits("at first", want)
	admitted := s.admits("after a restart", want)
	if err := lab.Dynamic().Resource(rig.ResourceRequests).Namespace(s.namespace).Delete(s.Context(), "large-0", metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	delete(want, "large-0")
	want["large-2"] = nodepool.Admitted
	s.until("the request that has got room to be read again", func() bool { return cmp.Equal(want, admitted()) })
}

// admits starts a manager with room for two large requests, waits for its decision, and lets it write a status. It
// returns the admission of each request.
func (s *scene) admits(what string, want map[string]nodepool.Admission) func() map[string]nodepool.Admission {
	s.Helper()
	manager := s.manager(kube.Options{RequestMemory: 400 << 10})
	owned, key := manager.OwnedRequests(), s.key("llm")
	admitted := func() map[string]nodepool.Admission {
		got := map[string]nodepool.Admission{}
		for _, r := range owned.Of(key) {
			got[r.ID] = r.Admission
			if whole := len(r.Requests) > 0; whole != (r.Admission == nodepool.Admitted) && r.Admission != nodepool.Undecided {
				s.Errorf("%s is admitted as %d and has %d bundles", r.ID, r.Admission, len(r.Requests))
			}
		}
		return got
	}
	s.until(what+": who has a place", func() bool { return cmp.Equal(want, admitted()) })
	if used := manager.RequestMemory(); used.Held > used.Budget || used.Refused != 4 {
		s.Errorf("%d bytes of %d are held, %d requests have no room", used.Held, used.Budget, used.Refused)
	}
	refused, err := owned.Get(key, "large-5")
	if err != nil {
		s.Fatal(err)
	}
	status := refused.Current()
	status.ObservedRequest, status.Since = refused.Fingerprint(), time.Now()
	status.SatisfiedSince, status.ExpiredSince = status.Since, status.Since
	owned.Report([]nodepool.OwnedUpdate{{Namespace: s.namespace, Name: "large-5", UID: refused.UID, Status: &status}})
	s.until("the status of what is refused", func() bool {
		object := s.request("large-5")
		code, _, _ := unstructured.NestedString(object.Object, "status", "reason", "code")
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, c := range conditions {
			if c, is := c.(map[string]any); is && c["type"] == "Accepted" && c["status"] == "False" && c["reason"] == "OverMemoryBudget" {
				return code == raydemand.CodeOverMemory
			}
		}
		return false
	})
	if !cmp.Equal(want, admitted()) {
		s.Errorf("a status moves somebody: %v", admitted())
	}
	return admitted
}

func lifetime(s *scene, owned requests.Calls) {
	key, now := s.key("llm"), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	wanted := gpus("a", "ann", key, 3)
	wanted.LeaseSeconds, wanted.RenewedAt, wanted.Priority = 30, now, 7
	wanted.Requests[0].Slice = &raydemand.SliceRequirement{Memory: 10 << 30, Isolation: "hardware"}
	made, created, err := owned.Put(s.Context(), wanted, allowed)
	if err != nil || !created {
		s.Fatalf("created %v, error %v", created, err)
	}
	read, err := owned.Get(key, "a")
	if err != nil {
		s.Fatal(err)
	}
	if held := read.HeldUntil; held.After(time.Now().Add(30 * time.Second)) {
		s.Errorf("held until %v, longer than its lease", held)
	}
	made.HeldUntil = read.HeldUntil
	if diff := cmp.Diff(made, read); diff != "" {
		s.Errorf("made and read: %s", diff)
	}
	if !read.RenewTime.Equal(now) || read.Fingerprint() != wanted.Fingerprint() || read.ClusterUID != string(s.get("llm").GetUID()) {
		s.Errorf("reads back as %+v", read)
	}

	wanted.Owner, wanted.RenewedAt = "bob", now.Add(time.Minute)
	again, created, err := owned.Put(s.Context(), wanted, allowed)
	if err != nil || created || again.Owner != "ann" || again.Fingerprint() != read.Fingerprint() || !again.RenewTime.Equal(now.Add(time.Minute)) {
		s.Errorf("the same again: %+v, created %v, error %v", again, created, err)
	}
	refusal := errors.New("not yours")
	if _, _, err := owned.Put(s.Context(), wanted, func(*nodepool.OwnedRequest) error { return refusal }); !errors.Is(err, refusal) {
		s.Errorf("whoever may not replaces: %v", err)
	}
	renewed, err := owned.Renew(s.Context(), key, "a", now.Add(time.Hour), allowed)
	if err != nil || !renewed.RenewTime.Equal(now.Add(time.Hour)) {
		s.Errorf("renewed %+v, error %v", renewed, err)
	}
	wanted.LeaseSeconds = 0
	if held, _, err := owned.Put(s.Context(), wanted, allowed); err != nil || held.LeaseSeconds != 0 || !held.ExpiresAt().IsZero() {
		s.Errorf("held until deleted: %+v, error %v", held, err)
	}
	before := s.request("a").GetResourceVersion()
	if _, _, err := owned.Put(s.Context(), wanted, allowed); err != nil || s.request("a").GetResourceVersion() != before {
		s.Errorf("a PUT that changes nothing is written, error %v", err)
	}

	s.create("other", rig.Group{Name: "gpu", Max: 4})
	s.until("the other cluster", func() bool { _, err := owned.List(s.key("other")); return err == nil })
	if _, _, err := owned.Put(s.Context(), gpus("a", "ann", s.key("other"), 1), allowed); !errors.Is(err, nodepool.ErrRequestElsewhere) {
		s.Errorf("one name serves two clusters: %v", err)
	}
	if _, _, err := owned.Put(s.Context(), gpus("a", "ann", s.key("none"), 1), allowed); !errors.Is(err, nodepool.ErrGone) {
		s.Errorf("without a cluster: %v", err)
	}
	tooMany := gpus("b", "ann", key, 10_001)
	if _, _, err := owned.Put(s.Context(), tooMany, allowed); !errors.Is(err, nodepool.ErrRequestRefused) {
		s.Errorf("too many bundles: %v", err)
	}
	if err := owned.Delete(s.Context(), key, "a", allowed); err != nil {
		s.Error(err)
	}
	if err := owned.Delete(s.Context(), key, "a", allowed); !errors.Is(err, nodepool.ErrNoRequest) {
		s.Errorf("deleted twice: %v", err)
	}
}

func adoption(s *scene, manager *kube.Manager) {
	err := s.apply("k", `{"rayCluster": "llm", "owner": "team", "leaseSeconds": 5, "bundles": [{"resources": {"GPU": 0.3, "memory": 8589934592}, "count": 2, "labelSelectors": [{"zone": "in(a,b)"}]}]}`)
	if err != nil {
		s.Fatal(err)
	}
	var cluster nodepool.Cluster
	s.until("the request, when those of the subtest before have gone", func() bool {
		cluster = s.read(manager, "llm")
		return len(cluster.Owned) == 1 && cluster.Owned[0].ID == "k"
	})
	seen := cluster.Owned[0]
	want := raydemand.Bundle{"GPU": 3000, "memory": raydemand.Whole(8 << 30)}
	if got := seen.Requests[0]; !got.Bundle.Equal(want) || got.Count != 2 || len(got.Selectors) != 1 || seen.ClusterUID != "" {
		s.Errorf("read as %+v", seen)
	}
	status := nodepool.OwnedStatus{ObservedRequest: seen.Fingerprint(), ObservedGeneration: 1, State: raydemand.RequestWaiting, Code: "on_the_way", Message: "soon",
		Since: seen.Since, SatisfiedSince: seen.Since, ExpiredSince: seen.Since, Groups: []nodepool.OwnedGroup{{Name: "gpu", Pods: 2}}, Pods: []string{"p"}, ExpectedAt: seen.Since.Add(time.Minute)}
	tell := func(status nodepool.OwnedStatus) {
		manager.OwnedRequests().Report([]nodepool.OwnedUpdate{{Namespace: s.namespace, Name: "k", UID: seen.UID, Status: &status,
			Adopt: adopter(&seen, cluster)}})
		s.until("the status "+string(status.State), func() bool {
			seen = s.read(manager, "llm").Owned[0]
			return cmp.Equal(seen.Status, status)
		})
	}
	tell(status)
	if seen.ClusterUID != cluster.UID || len(s.request("k").GetOwnerReferences()) != 1 {
		s.Errorf("not adopted: %+v", s.request("k").GetOwnerReferences())
	}
	status.State, status.Groups, status.Pods, status.ExpectedAt = raydemand.RequestExpired, nil, nil, time.Time{}
	tell(status) // the manager removes entries that no longer apply
	manager.OwnedRequests().Report([]nodepool.OwnedUpdate{{Namespace: s.namespace, Name: "k", UID: "another", ResourceVersion: seen.ResourceVersion, Delete: true}})
	manager.OwnedRequests().Report([]nodepool.OwnedUpdate{{Namespace: s.namespace, Name: "k", UID: seen.UID, ResourceVersion: seen.ResourceVersion, Delete: true}})
	s.until("the object to go", func() bool { return len(s.read(manager, "llm").Owned) == 0 })
}

func adopter(r *nodepool.OwnedRequest, cluster nodepool.Cluster) *nodepool.ClusterReference {
	if r.ClusterUID != "" {
		return nil
	}
	return &nodepool.ClusterReference{Name: cluster.Key.Name, UID: cluster.UID}
}
