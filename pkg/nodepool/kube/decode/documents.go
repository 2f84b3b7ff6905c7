package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Place is where an object is in a file: in which YAML document, the first of which is 1, and where in its lists, as in
// "items[1]: ", or empty.
type Place struct {
	Document int
	Item     string
}

// ReadObjects reads objects as `kubectl get -o yaml` or `-o json` prints them: YAML or JSON, several documents, lists.
// The error names the document and, if it is known, the field.
func ReadObjects(in io.Reader) (objects []map[string]any, places []Place, err error) {
	var read reading
	decoder := utilyaml.NewYAMLOrJSONDecoder(in, 4096)
	for number := 1; ; number++ {
		var document json.RawMessage
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return read.objects, read.places, nil
		case err == nil && (len(document) == 0 || bytes.Equal(document, []byte("null"))):
			continue
		case err == nil:
			err = read.document(document, number)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading document %d: %w", number, err)
		}
	}
}

// reading is what has been read of a file.
type reading struct {
	objects []map[string]any
	places  []Place
}

func (r *reading) document(document []byte, number int) error {
	object := map[string]any{}
	if err := utiljson.Unmarshal(document, &object); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return fmt.Errorf("want a Kubernetes object: the document is of type %s", wrong.Value)
		}
		return fmt.Errorf("want a Kubernetes object: %w", err)
	}
	return r.add(object, Place{Document: number}, 0)
}

// deepest bounds how deep lists may be nested. kubectl does not nest them.
const deepest = 10

// add adds an object, or the objects of a list.
func (r *reading) add(object map[string]any, at Place, depth int) error {
	kind, isText := object["kind"].(string)
	items, hasItems := object["items"].([]any)
	switch {
	case object["kind"] == nil || kind == "" && isText:
		return errors.New("kind is missing: want a Kubernetes object")
	case !isText:
		return fmt.Errorf("kind is %v: want a name such as RayCluster", object["kind"])
	case !strings.HasSuffix(kind, "List"):
		r.objects, r.places = append(r.objects, object), append(r.places, at)
		return nil
	case object["items"] != nil && !hasItems:
		return fmt.Errorf("items is %v: want a list of objects", object["items"])
	case depth > deepest:
		return fmt.Errorf("items: want lists nested at most %d deep", deepest)
	}
	for i, item := range items {
		fields, isObject := item.(map[string]any)
		if !isObject {
			return fmt.Errorf("items[%d] is %v: want an object", i, item)
		}
		inner := Place{at.Document, fmt.Sprintf("%sitems[%d]: ", at.Item, i)}
		if err := r.add(fields, inner, depth+1); err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	return nil
}
