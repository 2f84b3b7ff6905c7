package requests

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// kindless is an API server without ResourceRequests.
type kindless struct {
	dynamic.NamespaceableResourceInterface
}

var errKindless = apierrors.NewNotFound(v1alpha1.Resource.GroupResource(), "")

func (k kindless) Namespace(string) dynamic.ResourceInterface { return k }

func (kindless) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, errKindless
}

func (kindless) Create(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, errKindless
}

// Deleting their definition deletes all requests first. That there are none is then no news of what anybody asks for.
func TestAllCallsSayTheSameWhileTheKindIsNotFound(t *testing.T) {
	absent := false
	requests := storeOn(kindless{}, func(context.Context) *bool { return &absent })
	watched := watching(requests)
	_ = watched.Replace([]any{storedRequest("a", "5", "llm")}, "5")
	o := callsOf(requests)
	llm := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	calls := map[string]func() error{
		"All":  func() error { _, err := o.All(""); return err },
		"List": func() error { _, err := o.List(llm); return err },
		"Get":  func() error { _, err := o.Get(llm, "a"); return err },
		"Put": func() error {
			wanted := nodepool.OwnedRequest{Cluster: llm}
			wanted.ID = "b"
			_, _, err := o.Put(t.Context(), wanted, anybody)
			return err
		},
	}
	requests.miss(t.Context(), "", errKindless)
	for name, call := range calls {
		if err := call(); name != "Put" && err != nil || name == "Put" && !errors.Is(err, nodepool.ErrRequestsPaused) {
			t.Errorf("%s while one is known and the kind is not found: %v", name, err)
		}
	}
	_ = watched.Delete(storedRequest("a", "6", "llm"))
	for name, call := range calls {
		if err := call(); !errors.Is(err, nodepool.ErrRequestsPaused) {
			t.Errorf("%s while none is known and the kind is not found: %v", name, err)
		}
	}
	requests.readings[""].since = requests.readings[""].since.Add(-retryPause)
	requests.miss(t.Context(), "", errKindless)
	for name, call := range calls {
		if err := call(); !errors.Is(err, nodepool.ErrNoRequests) {
			t.Errorf("%s once the kind is proven to be gone: %v", name, err)
		}
	}
}

// overtaken is an API server whose watch reports a new request, and its deletion, before the response to its creation.
type overtaken struct {
	kindless
	watched *watchedStore
}

func (k *overtaken) Namespace(string) dynamic.ResourceInterface { return k }

func (k *overtaken) Create(
	_ context.Context, o *unstructured.Unstructured, _ metav1.CreateOptions, _ ...string,
) (*unstructured.Unstructured, error) {
	_ = k.watched.Add(storedRequest(o.GetName(), "7", "llm"))
	_ = k.watched.Delete(storedRequest(o.GetName(), "8", "llm"))
	return storedRequest(o.GetName(), "7", "llm"), nil
}

func TestALateResponseToACreationBringsBackNoRequestThatIsGone(t *testing.T) {
	client := &overtaken{}
	s := storeOn(client, nil)
	client.watched = watching(s)
	_ = client.watched.Replace(nil, "5")
	wanted := nodepool.OwnedRequest{Cluster: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}}
	wanted.ID = "b"
	if _, _, err := callsOf(s).Put(t.Context(), wanted, anybody); err != nil {
		t.Fatal(err)
	}
	if left := s.versions("llm"); len(left) > 0 {
		t.Errorf("kept is %v", left)
	}
}
