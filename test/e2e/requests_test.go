package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/rig"
)

// TestRequestsOfTwoOwnersAddUpAndEachEndsByItself lets one owner request with kubectl and another over REST. The test
// installs the kind of their requests late, and restarts Heliostat in between. When the lease of one owner expires, its
// workers go. The workers of the other owner stay, no matter how long they are idle.
func TestRequestsOfTwoOwnersAddUpAndEachEndsByItself(t *testing.T) {
	s := stage(t, rig.Cluster{Name: "owned", IdleSeconds: 5, Groups: []rig.Group{gpu}})
	if code := s.keeps("bob", `{"holdUntilDeleted": true, "bundles": [{"resources": {"GPU": 1}}]}`); code != http.StatusNotImplemented {
		t.Errorf("without the kind a request with an owner is answered %d", code)
	}
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.workers("gpu", 1) // the plain API works without the kind
	s.must(rig.InstallCRDs(s.ctx, lab.Dynamic))
	s.apply("ann", `{"rayCluster": "owned", "owner": "ann", "leaseSeconds": 3600, "bundles": [{"resources": {"GPU": 1}, "count": 2}]}`)
	ctx, cancel := s.patient()
	defer cancel()
	for s.keeps("bob", `{"holdUntilDeleted": true, "bundles": [{"resources": {"GPU": 1}}]}`) != http.StatusCreated {
		if ctx.Err() != nil {
			t.Fatal("the kind that was installed is not noticed")
		}
		time.Sleep(200 * time.Millisecond)
	}
	s.rest(http.MethodDelete, "/request_resources", "")
	for _, id := range []string{"ann", "bob"} {
		if got := s.waitFor(id); got.State != "Satisfied" || len(got.Groups) != 1 || len(got.Pods) != int(got.Groups[0].Pods) {
			t.Errorf("request %s ends as %+v", id, got)
		}
	}
	held := s.workers("gpu", 3)
	s.until("what kubectl shows of ann's request", func() bool {
		object := s.requestObject("ann")
		state, _, _ := unstructured.NestedString(object.Object, "status", "state")
		return state == "Satisfied" && len(object.GetOwnerReferences()) == 1
	})

	fleet.Kill()
	s.must(restartFleet(s.ctx))
	s.told("the cluster after the restart", func(status) bool { return true })
	s.quiet("both requests hold through the restart, idle as the workers are")
	if living := rig.Living(s.journal.Facts(), "gpu"); !slices.Equal(living, held) {
		t.Errorf("workers %v before and %v after the restart", held, living)
	}

	// The test shortens the lease so that it has expired.
	s.patchRequest("ann", `{"spec": {"leaseSeconds": 1}}`)
	s.k8sEvent("RequestExpired")
	s.workers("gpu", 1)
	s.until("word that ann's request has expired", func() bool {
		state, _, _ := unstructured.NestedString(s.requestObject("ann").Object, "status", "state")
		return state == "Expired"
	})
	if got := s.waitFor("bob"); got.State != "Satisfied" || got.Groups[0].Pods != 1 {
		t.Errorf("after ann's lease bob's request is %+v", got)
	}
	s.quiet("bob's worker is kept beyond its idle time-out")
	s.drainedBeforeStopped() // from here on, Heliostat stops pods that never joined

	// After the lease is extended and renewed, the request counts again for the length of the lease.
	s.patchRequest("ann", `{"spec": {"leaseSeconds": 3600}}`)
	s.rest(http.MethodPost, "/request_resources/ann/renew", "")
	s.until("ann's request to count again", func() bool {
		state, _, _ := unstructured.NestedString(s.requestObject("ann").Object, "status", "state")
		return state == "Waiting"
	})
	s.rest(http.MethodDelete, "/request_resources/ann", "")
	s.rest(http.MethodDelete, "/request_resources/bob", "")
	s.workers("gpu", 0)
}

// ownedRequest is a request as the REST API returns it.
type ownedRequest struct {
	State  string
	Reason struct{ Code, Message string }
	Groups []struct {
		Name string
		Pods int32
	}
	Pods []string
}

// keeps puts a request and returns the status code.
func (s *scene) keeps(id, body string) int {
	s.Helper()
	path := fmt.Sprintf("/v1/namespaces/%s/rayclusters/%s/request_resources/%s", s.namespace, s.name, id)
	code, _, err := fleet.Call(s.ctx, http.MethodPut, path, body)
	s.must(err)
	return code
}

// waitFor makes a call that the server answers when the request is no longer pending.
func (s *scene) waitFor(id string) ownedRequest {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for {
		var got ownedRequest
		s.must(json.Unmarshal(s.rest(http.MethodGet, "/request_resources/"+id+"?wait=20s", ""), &got))
		if got.State != "Waiting" || ctx.Err() != nil {
			return got
		}
	}
}

func (s *scene) apply(name, spec string) {
	s.Helper()
	object := &unstructured.Unstructured{}
	s.must(json.Unmarshal(fmt.Appendf(nil, `{"apiVersion": "heliostat.dev/v1alpha1", "kind": "ResourceRequest", "metadata": {"name": %q, "namespace": %q}, "spec": %s}`,
		name, s.namespace, spec), object))
	// The API server serves a new kind with a short delay.
	s.until("the API server to take a request", func() bool {
		_, err := lab.Dynamic.Resource(rig.ResourceRequests).Namespace(s.namespace).Create(s.ctx, object, metav1.CreateOptions{})
		return err == nil
	})
}

func (s *scene) requestObject(name string) *unstructured.Unstructured {
	s.Helper()
	object, err := lab.Dynamic.Resource(rig.ResourceRequests).Namespace(s.namespace).Get(s.ctx, name, metav1.GetOptions{})
	s.must(err)
	return object
}

func (s *scene) patchRequest(name, merge string) {
	s.Helper()
	_, err := lab.Dynamic.Resource(rig.ResourceRequests).Namespace(s.namespace).Patch(s.ctx, name, types.MergePatchType, []byte(merge), metav1.PatchOptions{})
	s.must(err)
}

// until waits until holds returns true.
func (s *scene) until(what string, holds func() bool) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for !holds() {
		if ctx.Err() != nil {
			s.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
