package requests

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// storedRequest is a ResourceRequest as a watch reports it.
func storedRequest(name, version, cluster string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"rayCluster": cluster, "owner": "ann", "holdUntilDeleted": true,
		"bundles": []any{map[string]any{"resources": map[string]any{"GPU": 0.5}, "count": int64(2)}},
	}}}
	object.SetNamespace("ml")
	object.SetName(name)
	object.SetUID(types.UID("uid-" + name))
	object.SetResourceVersion(version)
	return object
}

// watchedStore is a store with what a watch of all namespaces passes to it.
type watchedStore struct {
	*Store
	*taker
}

type taker = reflector.Store[*nodepool.OwnedRequest]

func watching(s *Store) *watchedStore { return &watchedStore{s, s.store("")} }

// requestStore is the store of a watch of all namespaces, and the RayClusters that it looked at.
func requestStore() (*watchedStore, map[string]int) {
	looked := map[string]int{}
	s := storeOn(nil, nil)
	s.changed = func(key nodepool.ClusterKey) { looked[key.Name]++ }
	return watching(s), looked
}

// storeOn is a store of an API server that tells nobody of changes.
func storeOn(client dynamic.NamespaceableResourceInterface, known func(context.Context) *bool) *Store {
	ignore := func(nodepool.ClusterKey) {}
	return newStore(Config{Client: client, Logger: slog.New(slog.DiscardHandler), Changed: ignore}, known)
}

// versions are those of the requests for a RayCluster, by name.
func (s *Store) versions(cluster string) map[string]string {
	versions := map[string]string{}
	for _, r := range s.Of(nodepool.ClusterKey{Namespace: "ml", Name: cluster}) {
		versions[r.ID] = r.ResourceVersion
	}
	return versions
}

func TestWhatThisProcessWroteIsNotForgottenForAWatchThatLags(t *testing.T) {
	s, looked := requestStore()
	if err := s.available("ml"); !errors.Is(err, nodepool.ErrRequestsPaused) {
		t.Errorf("before anything was read: %v", err)
	}
	check := func(what string, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, s.versions("llm")); diff != "" {
			t.Errorf("%s (-want +got): %s", what, diff)
		}
	}
	_ = s.Replace([]any{storedRequest("a", "5", "llm"), storedRequest("b", "6", "llm")}, "6")
	check("after the first list", map[string]string{"a": "5", "b": "6"})
	if err := s.available("ml"); err != nil || looked["llm"] == 0 {
		t.Errorf("available %v, looked at %v", err, looked)
	}
	s.Set(Decode(storedRequest("a", "9", "llm")))
	s.Set(Decode(storedRequest("c", "10", "llm")))
	_ = s.Update(storedRequest("a", "7", "llm"))
	check("after older news", map[string]string{"a": "9", "b": "6", "c": "10"})
	_ = s.Replace([]any{storedRequest("a", "7", "llm")}, "8")
	check("after an older list", map[string]string{"a": "9", "c": "10"})
	_ = s.Replace([]any{storedRequest("a", "9", "llm")}, "11")
	check("after a newer list", map[string]string{"a": "9"})

	s.deleted(Decode(storedRequest("a", "9", "llm")))
	_ = s.Update(storedRequest("a", "9", "llm"))
	check("what was deleted comes back by no watch that lags", map[string]string{})
}

// The answer to a write may arrive after the watch has reported that somebody deleted the request.
func TestALateAnswerBringsBackNoRequestThatIsGone(t *testing.T) {
	for how, goes := range map[string]func(*watchedStore) error{
		"a watch":      func(s *watchedStore) error { return s.Delete(storedRequest("a", "8", "llm")) },
		"a newer list": func(s *watchedStore) error { return s.Replace(nil, "8") },
		"before it came": func(s *watchedStore) error {
			s.deleted(Decode(storedRequest("a", "5", "llm"))) // as if no watch had reported it before
			return s.Delete(storedRequest("a", "8", "llm"))
		},
	} {
		s, _ := requestStore()
		_ = s.Replace([]any{storedRequest("a", "5", "llm")}, "6")
		if err := goes(s); err != nil {
			t.Fatal(err)
		}
		s.keep(Decode(storedRequest("a", "7", "llm")))
		if left := s.versions("llm"); len(left) != 0 {
			t.Errorf("%s reports it gone, and an answer brings back %v", how, left)
		}
		again := storedRequest("a", "9", "llm")
		again.SetUID("uid-of-another")
		_ = s.Add(again)
		if left := s.versions("llm"); left["a"] != "9" {
			t.Errorf("%s: another request of the same name is not kept: %v", how, left)
		}
	}
}

func TestARequestIsFoundUnderItsClusterAlone(t *testing.T) {
	s, looked := requestStore()
	_ = s.Add(storedRequest("a", "5", "llm"))
	_ = s.Update(storedRequest("a", "6", "other"))
	if len(s.versions("llm")) != 0 || len(s.versions("other")) != 1 {
		t.Errorf("llm has %v, other %v", s.versions("llm"), s.versions("other"))
	}
	if diff := cmp.Diff([]string{"llm", "other"}, slices.Sorted(maps.Keys(looked))); diff != "" {
		t.Errorf("looked at: %s", diff)
	}
	_ = s.Delete(storedRequest("a", "7", "other"))
	if len(s.all("")) != 0 {
		t.Errorf("left %v", s.all(""))
	}
}

func TestAnObjectThatCannotBeReadIsReportedByName(t *testing.T) {
	for _, c := range []struct {
		field string
		value any
		want  string
	}{
		{"bundles", "none", `spec.bundles is of type string: want a list`},
		{"priority", "high", `spec.priority is of type string: want a whole number of 32 bits without quotes`},
		{"allOrNothing", 1, `spec.allOrNothing is of type number: want true or false`},
	} {
		bad := storedRequest("a", "5", "llm")
		bad.Object["spec"].(map[string]any)[c.field] = c.value
		if r := Decode(bad); r.Unreadable != c.want || r.Cluster.Name != "llm" || r.ID != "a" {
			t.Errorf("%s %v: read as %q of %s, want %q", c.field, c.value, r.Unreadable, r.Cluster, c.want)
		}
	}
	bad := storedRequest("a", "5", "llm")
	bad.Object["spec"] = "none"
	if r := Decode(bad); r.Unreadable != `spec is of type string: want an object` {
		t.Errorf("read as %q", r.Unreadable)
	}
	nothing := storedRequest("b", "5", "llm")
	nothing.Object["spec"].(map[string]any)["bundles"] = []any{map[string]any{"resources": map[string]any{"GPU": 0}}}
	if r := Decode(nothing); r.Unreadable != "spec.bundles[0]: resources are empty" {
		t.Errorf("read as %q", r.Unreadable)
	}
}

func TestOnlyTheLeaderWritesNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := requestStore()
		// Without a client a write would panic: a process that does not lead comes to none.
		w := NewWriter(s.Store, nil, func(nodepool.ClusterKey) bool { return false }, slog.New(slog.DiscardHandler))
		w.Report([]nodepool.OwnedUpdate{{Namespace: "ml", Name: "a", Status: &nodepool.OwnedStatus{Code: "first"}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Start(ctx); err != nil || w.queue.Len() > 0 || len(w.waiting) > 0 {
			t.Errorf("%v; %v wait", err, w.waiting)
		}
	})
}

func TestWhatIsKnownAlreadyIsNoNews(t *testing.T) {
	s, looked := requestStore()
	_ = s.Replace(nil, "4")
	_ = s.Add(storedRequest("a", "5", "llm"))
	s.Set(Decode(storedRequest("a", "6", "llm")))
	_ = s.Update(storedRequest("a", "6", "llm"))
	_ = s.Replace([]any{storedRequest("a", "6", "llm")}, "6")
	if diff := cmp.Diff(map[string]int{"llm": 2}, looked); diff != "" {
		t.Errorf("a watch reports what this process wrote (-want +got): %s", diff)
	}
}

func TestAStatusIsShownAndNotPlanned(t *testing.T) {
	s, looked := requestStore()
	version := func(version string, generation int64, state string) *unstructured.Unstructured {
		object := storedRequest("a", version, "llm")
		object.SetGeneration(generation)
		object.Object["status"] = map[string]any{"state": state}
		return object
	}
	_ = s.Add(version("5", 1, ""))
	_ = s.Update(version("6", 1, "Waiting"))
	_ = s.Update(version("7", 1, "Satisfied"))
	if diff := cmp.Diff(map[string]int{"llm": 1}, looked); diff != "" {
		t.Errorf("after two statuses (-want +got): %s", diff)
	}
	_ = s.Update(version("8", 2, "Satisfied"))
	if looked["llm"] != 2 {
		t.Error("a new spec is not planned")
	}
	if r, _ := s.get("ml", "a"); r.ResourceVersion != "8" || r.Status.State != "Satisfied" {
		t.Errorf("kept is %+v", r)
	}
}
