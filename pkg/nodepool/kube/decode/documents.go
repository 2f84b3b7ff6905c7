package decode

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// Place is where an object is in a file: in which YAML document, the first of which is 1, and where in its lists, as in
// "items[1]: ", or empty. Twice has the keys that its document has twice, with their lines.
type Place struct {
	Document int
	Item     string
	Twice    []string
}

// ErrNoObject is of a document that is valid in another kind of file: a patch of Kustomize, or values or a template of
// Helm.
var ErrNoObject = errors.New("want a Kubernetes object")

// ReadObjects reads objects as `kubectl get -o yaml` or `-o json` prints them: YAML or JSON, several documents, lists.
// The error names the document and, if it is known, the field.
func ReadObjects(in io.Reader) (objects []map[string]any, places []Place, err error) {
	var read reading
	next := documentsIn(in)
	for number := 1; ; number++ {
		document, twice, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return read.objects, read.places, nil
		case err == nil && (len(document) == 0 || bytes.Equal(document, []byte("null"))):
			continue
		case err == nil:
			err = read.document(document, Place{Document: number, Twice: twice})
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading document %d: %w", number, err)
		}
	}
}

// notFinite matches a member whose value YAML knows and JSON does not.
var notFinite = regexp.MustCompile(`(?i)[\w."-]+:\s*[-+]?\.(nan|inf)\b`)

// OneDocument returns a text of YAML or JSON as JSON. It has one document, and each key of an object once. Of a text
// without any, it is null.
func OneDocument(text []byte) (only []byte, err error) {
	only = []byte("null")
	documents := utilyaml.NewYAMLReader(bufio.NewReader(io.MultiReader(bytes.NewReader(text), strings.NewReader("\n"))))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return only, nil
		}
		var unsupported *json.UnsupportedValueError
		if document, err = yaml.YAMLToJSONStrict(document); errors.As(err, &unsupported) {
			return nil, fmt.Errorf("%s: want a finite number", cmp.Or(string(notFinite.Find(text)), unsupported.Str))
		}
		switch {
		case err != nil:
			return nil, err
		case string(document) == "null":
		case string(only) != "null":
			return nil, errors.New("two documents: want one")
		default:
			only = document
		}
	}
}

// keyTwice is what the YAML reader says of a key that is there already. Like kubectl, ReadObjects takes the last one.
var keyTwice = regexp.MustCompile(`line (\d+): key (".*") already set in map`)

// documentsIn returns a function that reads the next document as JSON, with the keys that it has twice.
func documentsIn(in io.Reader) func() (document json.RawMessage, twice []string, err error) {
	// The YAML readers lose a last line without a newline whose length is a multiple of their buffer's.
	buffered := bufio.NewReader(io.MultiReader(in, strings.NewReader("\n")))
	start, _ := buffered.Peek(4096)
	if utilyaml.IsJSONBuffer(start) {
		decoder := utilyaml.NewYAMLOrJSONDecoder(buffered, 4096)
		return func() (document json.RawMessage, twice []string, err error) {
			if err = decoder.Decode(&document); err == nil {
				if path, found := fieldpath.RepeatedKey(document); found {
					twice = []string{fmt.Sprintf("key %s is there twice: only the last one counts", path)}
				}
			}
			return document, twice, err
		}
	}
	documents := utilyaml.NewYAMLReader(buffered)
	return func() (document json.RawMessage, twice []string, err error) {
		text, err := documents.Read()
		if err != nil {
			return nil, nil, err
		}
		if document, err = yaml.YAMLToJSONStrict(text); err == nil {
			return document, nil, nil
		}
		if bytes.Contains(text, []byte("<<:")) {
			document, err = yaml.YAMLToJSON(text) // the parser counts a key of a merge (<<) as one that is there twice
			return document, nil, err
		}
		for _, found := range keyTwice.FindAllStringSubmatch(err.Error(), -1) {
			twice = append(twice, fmt.Sprintf("key %s is there twice, again in line %s of its document: only the last "+
				"one counts", found[2], found[1]))
		}
		if document, err = yaml.YAMLToJSON(text); err != nil {
			err = ofTemplate(text, err)
		}
		return document, twice, err
	}
}

// ofTemplate says of a document that is not YAML if it is a template. What is in a variable decides what a document
// with one means, also where YAML allows it, as in a text: so only the fault shows that nothing has filled it in.
func ofTemplate(text []byte, err error) error {
	if bytes.Contains(text, []byte("{{")) {
		return fmt.Errorf("%w: it is a template; examine what `helm template` prints", ErrNoObject)
	}
	if name := placeholder.Find(text); name != nil {
		return fmt.Errorf("%w: it is a template (%w); examine it with a value for %s", ErrNoObject, err, name)
	}
	return err
}

// placeholder matches what scripts fill in: ${NAME} and @NAME@.
var placeholder = regexp.MustCompile(`\$\{\w+\}|@[A-Z][A-Z0-9_]*@`)

// unfilled matches the variables that envsubst fills in. $(NAME), which Kubernetes fills in itself, is none of them.
var unfilled = regexp.MustCompile(`\$\{\w+\}|\$[A-Za-z_]\w*`)

// Unfilled returns a variable that envsubst would have filled in, or nothing, for values in which nothing else can have
// a dollar sign.
func Unfilled(value string) string { return unfilled.FindString(value) }

// FillIn is the fix for a variable that nothing has filled in.
func FillIn(variable string) string {
	return "give " + variable + " its value before you create the object, as envsubst does"
}

// reading is what has been read of a file.
type reading struct {
	objects []map[string]any
	places  []Place
}

func (r *reading) document(document []byte, at Place) error {
	object := map[string]any{}
	if err := utiljson.Unmarshal(document, &object); err != nil {
		if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
			return fmt.Errorf("%w: the document is of type %s", ErrNoObject, wrong.Value)
		}
		return fmt.Errorf("%w: %w", ErrNoObject, err)
	}
	return r.add(object, at)
}

// add adds an object, or the objects of a list.
func (r *reading) add(object map[string]any, at Place) error {
	kind, isText := object["kind"].(string)
	items, hasItems := object["items"].([]any)
	switch {
	case object["kind"] == nil || kind == "" && isText:
		return fmt.Errorf("kind is missing: %w; values of Helm are none", ErrNoObject)
	case !isText:
		return fmt.Errorf("kind is %s: want a name such as RayCluster", fieldpath.Of(object["kind"], nil))
	case kind == "AppWrapper":
		return r.addWrapped(object, at)
	case !strings.HasSuffix(kind, "List"):
		r.objects, r.places = append(r.objects, object), append(r.places, at)
		return nil
	case object["items"] != nil && !hasItems:
		return fmt.Errorf("items is %s: want a list of objects", fieldpath.Quoted(object["items"]))
	}
	for i, item := range items {
		fields, isObject := item.(map[string]any)
		if !isObject {
			return fmt.Errorf("items[%d] is %s: want an object", i, fieldpath.Quoted(item))
		}
		inner := Place{at.Document, fmt.Sprintf("%sitems[%d]: ", at.Item, i), at.Twice}
		if err := r.add(fields, inner); err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	return nil
}

// addWrapped adds the objects in an AppWrapper of CodeFlare, which creates them in its namespace; without any, it adds
// the AppWrapper.
func (r *reading) addWrapped(wrapper map[string]any, at Place) error {
	before := len(r.objects)
	for i, component := range FieldsOf(wrapper, nil).Object("spec").Objects("components") {
		object, isObject := component.Get("template").Raw().(map[string]any)
		if !isObject || object["kind"] == nil {
			continue
		}
		inner := Place{at.Document, fmt.Sprintf("%sspec.components[%d].template: ", at.Item, i), at.Twice}
		if err := r.add(object, inner); err != nil {
			return fmt.Errorf("spec.components[%d].template: %w", i, err)
		}
	}
	if len(r.objects) == before {
		r.objects, r.places = append(r.objects, wrapper), append(r.places, at)
	}
	return nil
}
