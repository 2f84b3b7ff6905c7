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
	return s.applyWith(name, spec, metav1.CreateOptions{})
}

func (s *scene) applyWith(name, spec string, options metav1.CreateOptions) error {
	s.Helper()
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion": "heliostat.dev/v1alpha1", "kind": "ResourceRequest", "metadata": {"name": %q, "namespace": %q}, "spec": %s}`, name, s.namespace, spec)
	must(s, json.Unmarshal([]byte(text), object))
	_, err := lab.Dynamic().Resource(rig.ResourceRequests).Namespace(s.namespace).Create(s.Context(), object, options)
	return err
}

func (s *scene) request(name string) *unstructured.Unstructured {
	s.Helper()
	object, err := lab.Dynamic().Resource(rig.ResourceRequests).Namespace(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	must(s, err)
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
	must(t, rig.InstallCRDs(t.Context(), lab.Dynamic()))
	s.Cleanup(func() {
		if err := rig.RemoveCRDs(context.Background(), lab.Dynamic()); err != nil {
			s.Error(err)
		}
	})
	s.until("the kind that was installed meanwhile", func() bool { return owned.Available(s.namespace) == nil })

	t.Run("what makes no sense is refused by the API server", func(t *testing.T) { refusals(&scene{t, s.namespace}) })
	t.Run("a request is made, read, replaced, renewed and deleted", func(t *testing.T) { lifetime(&scene{t, s.namespace}, owned) })
	t.Run("one that kubectl made is adopted and told what becomes of it", func(t *testing.T) { adoption(&scene{t, s.namespace}, manager) })

	must(t, rig.RemoveCRDs(t.Context(), lab.Dynamic()))
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
	must(s, err)
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
	must(s, err)
	var cluster nodepool.Cluster
	defer func() {
		if s.Failed() {
			s.Logf("requests as they were read last: %+v, unknown: %q", cluster.Owned, cluster.OwnedUnknown)
		}
	}()
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
		Since: seen.Since, SatisfiedSince: seen.Since, ExpiredSince: seen.Since, Groups: []nodepool.OwnedGroup{{Name: "gpu", Pods: 2}}, Pods: []string{"p"}}
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
	status.State, status.Groups, status.Pods = raydemand.RequestExpired, nil, nil
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
