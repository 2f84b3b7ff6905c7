package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/api/v1alpha1"
)

// requestsPage is how many objects one page of a list has, which limits the work of the API server. This process
// decodes one object at a time.
const requestsPage = 100

// PageReader opens one page of the list of a namespace, as JSON.
type PageReader func(ctx context.Context, namespace, from string) (io.ReadCloser, error)

// takenRequest is the name and version of a listed object.
type takenRequest struct{ metav1.ObjectMeta }

// GetObjectKind returns an empty kind: the kind is known.
func (t *takenRequest) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject copies it.
func (t *takenRequest) DeepCopyObject() runtime.Object {
	return &takenRequest{*t.ObjectMeta.DeepCopy()}
}

// takenRequests are all objects of a list.
type takenRequests struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []takenRequest
}

// DeepCopyObject copies it.
func (t *takenRequests) DeepCopyObject() runtime.Object {
	all := &takenRequests{
		TypeMeta: t.TypeMeta,
		ListMeta: *t.ListMeta.DeepCopy(),
		Items:    make([]takenRequest, len(t.Items)),
	}
	for i := range t.Items {
		all.Items[i].ObjectMeta = *t.Items[i].ObjectMeta.DeepCopy()
	}
	return all
}

// NewPageReader reads pages with its own client, because the dynamic client decodes a whole page at once.
func NewPageReader(config *rest.Config, client *http.Client) (PageReader, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	plain, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("connecting for lists of ResourceRequests: %w", err)
	}
	return func(ctx context.Context, namespace, from string) (io.ReadCloser, error) {
		return plain.Get().AbsPath("/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version).
			NamespaceIfScoped(namespace, namespace != metav1.NamespaceAll).Resource(v1alpha1.Resource.Resource).
			Param("limit", strconv.Itoa(requestsPage)).Param("continue", from).Stream(ctx)
	}, nil
}

// list takes all objects of a namespace one by one and returns their names. It holds nothing else in memory.
func (w *namespaceStore) list(ctx context.Context, pages PageReader) (*takenRequests, error) {
	all := &takenRequests{}
	for from := ""; ; from = all.Continue {
		page, err := pages(ctx, w.namespace, from)
		if err != nil {
			return nil, err
		}
		all.ListMeta = metav1.ListMeta{}
		err = w.takePage(page, all)
		page.Close()
		if err != nil {
			return nil, fmt.Errorf("reading a list of ResourceRequests: %w", err)
		}
		if all.Continue == "" {
			return all, nil
		}
	}
}

// takePage reads a page of a list, item by item.
func (w *namespaceStore) takePage(page io.Reader, all *takenRequests) error {
	in := json.NewDecoder(page)
	if err := delimiter(in, '{'); err != nil {
		return err
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return err
		}
		switch name {
		case "metadata":
			err = in.Decode(&all.ListMeta)
		case "items":
			err = w.takeItems(in, all)
		default:
			err = in.Decode(&json.RawMessage{})
		}
		if err != nil {
			return err
		}
	}
	return delimiter(in, '}')
}

func (w *namespaceStore) takeItems(in *json.Decoder, all *takenRequests) error {
	if err := delimiter(in, '['); err != nil {
		return err
	}
	for in.More() {
		var text json.RawMessage
		if err := in.Decode(&text); err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(text, &object.Object); err != nil { // keeps whole numbers whole
			return err
		}
		all.Items = append(all.Items, *w.take(object))
	}
	return delimiter(in, ']')
}

// delimiter reads a bracket or brace.
func delimiter(in *json.Decoder, want json.Delim) error {
	token, err := in.Token()
	if err == nil && token != want {
		err = fmt.Errorf("found %v, want %v", token, want)
	}
	return err
}
