package doctor

import (
	"bytes"
	"encoding/json"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// testsOf returns operations that test whether the object still has what the patch was made for. If someone else, or
// another patch, has changed it, for example the order of a list, the API server refuses the whole patch.
func testsOf(o *Object, operations []operation) []operation {
	t := patchTests{root: o.Root(), seen: map[string]bool{}}
	for _, operation := range operations {
		for _, at := range []fieldpath.Path{operation.From, operation.At} {
			t.addNames(at)
		}
		if operation.Op == "move" {
			t.addValue(operation.From)
		}
		t.addValue(operation.At)
	}
	return t.tests
}

// patchTests collects the tests of a patch, each one once.
type patchTests struct {
	root  fieldpath.Value
	tests []operation
	seen  map[string]bool
}

func (t *patchTests) add(at fieldpath.Path, value any) {
	if pointer := at.Pointer(); !t.seen[pointer] {
		t.seen[pointer] = true
		t.tests = append(t.tests, operation{Op: "test", At: at, Value: value})
	}
}

// addNames tests the name of each list element on the path.
func (t *patchTests) addNames(at fieldpath.Path) {
	v := t.root
	for _, prefix := range at.Prefixes() {
		index, isIndex := prefix.LastIndex()
		if !isIndex {
			v = v.Get(prefix.LastKey())
			continue
		}
		items := v.Items()
		if index >= len(items) {
			return
		}
		v = items[index]
		for _, key := range []string{"groupName", "name"} {
			if name := v.Get(key); name.Text() != "" {
				t.add(name.Path(), name.Raw())
				break
			}
		}
	}
}

// longestTest bounds in bytes the values that a patch tests.
const longestTest = 256

// addValue tests that the old value is still there, or that there is none: the API server's patch library treats an
// absent key as null. It does not test strings that the API server may store in other bytes, nor long values.
func (t *patchTests) addValue(at fieldpath.Path) {
	v := t.root
	for _, prefix := range at.Prefixes() {
		if index, isIndex := prefix.LastIndex(); isIndex {
			items := v.Items()
			if index >= len(items) {
				return
			}
			v = items[index]
			continue
		}
		if _, isObject := v.Raw().(map[string]any); !isObject {
			return // the end of a list, or what an earlier operation creates
		}
		v = v.Get(prefix.LastKey())
	}
	text, err := json.Marshal(v.Raw())
	if err == nil && len(text) <= longestTest && !bytes.Contains(text, []byte(`\u00`)) {
		t.add(at, v.Raw())
	}
}
