package requests

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestErrorsOfTheAPIServerBecomeErrorsOfRequests(t *testing.T) {
	kind := schema.GroupResource{Group: "heliostat.dev", Resource: "resourcerequests"}
	llm := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	for name, c := range map[string]struct {
		got, want error
		says      string
	}{
		"the kind is being deleted": {
			apierrors.NewForbidden(kind, "a", errors.New("create not allowed while custom resource definition is terminating")), nodepool.ErrRequestsPaused, "being deleted",
		},
		"a quota":           {apierrors.NewForbidden(kind, "a", errors.New("exceeded quota: few")), nodepool.ErrRequestRefused, "exceeded quota: few"},
		"another write":     {apierrors.NewConflict(kind, "a", errors.New("modified")), nodepool.ErrConflict, "others change the request at the same time"},
		"again and again":   {nodepool.ErrRequestConflict, nodepool.ErrConflict, "others change the request at the same time"},
		"not what it takes": {apierrors.NewBadRequest("no"), nodepool.ErrRequestRefused, "no"},
	} {
		err := Calls{}.about("keeping", "a", llm, c.got)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "keeping request a for ml/llm: ") || strings.Contains(err.Error(), "RayCluster changed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// callsOf are the calls of a manager that knows all RayClusters.
func callsOf(store *Store) Calls {
	return Calls{
		Store: store,
		Cluster: func(nodepool.ClusterKey) (*unstructured.Unstructured, error) {
			return &unstructured.Unstructured{Object: map[string]any{}}, nil
		},
		Writable: func() error { return nil },
	}
}

// storedHere is a manager that knows a request as known, of an API server that has one otherwise; nil is none.
func storedHere(t *testing.T, known, there *unstructured.Unstructured) (Calls, *oneRequest) {
	t.Helper()
	server := &oneRequest{object: there}
	requests := storeOn(server, nil)
	var list []any
	if known != nil {
		list = append(list, known)
	}
	_ = watching(requests).Replace(list, "5")
	return callsOf(requests), server
}

func anybody(*nodepool.OwnedRequest) error { return nil }

// A write is decided by what the API server has: "kept" of something that is not there would stay wrong for good.
func TestAWriteIsDecidedByWhatTheAPIServerHas(t *testing.T) {
	other := storedRequest("a", "9", "llm")
	other.Object["spec"].(map[string]any)["bundles"] = []any{map[string]any{"resources": map[string]any{"GPU": int64(1)}, "count": int64(1)}}
	o, server := storedHere(t, storedRequest("a", "5", "llm"), other)
	wanted := *Decode(storedRequest("a", "5", "llm"))
	if _, created, err := o.Put(t.Context(), wanted, anybody); err != nil || created || server.patches != 1 || !strings.Contains(server.last, `"GPU":0.5`) {
		t.Errorf("created %v, %v, %d writes, the last is %s", created, err, server.patches, server.last)
	}
	newest := func(known *nodepool.OwnedRequest) error {
		if known == nil || known.ResourceVersion != "9" {
			return nodepool.ErrReadOnly
		}
		return nil
	}
	nobody := func(*nodepool.OwnedRequest) error { return nodepool.ErrReadOnly }
	for _, known := range []*unstructured.Unstructured{storedRequest("a", "5", "llm"), nil} {
		o, server := storedHere(t, known, storedRequest("a", "9", "llm"))
		if _, _, err := o.Put(t.Context(), wanted, newest); err != nil || server.patches != 1 {
			t.Errorf("kept: %v, %d writes", err, server.patches)
		}
		if _, _, err := o.Put(t.Context(), wanted, nobody); !errors.Is(err, nodepool.ErrReadOnly) || server.patches != 1 {
			t.Errorf("kept against a refusal: %v, %d writes", err, server.patches)
		}
		if err := o.Delete(t.Context(), llm, "a", newest); err != nil || server.deletes != 1 {
			t.Errorf("deleted: %v, %d times", err, server.deletes)
		}
	}
}

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
