package fieldpath

import (
	"bytes"
	"encoding/json"
	"slices"
)

// CheckObject returns a fault if a text is not a JSON object, or if an object in it has a key twice. want says which
// object is right.
func CheckObject(text []byte, want string) *Fault {
	if text = bytes.TrimSpace(text); !json.Valid(text) || text[0] != '{' {
		return &Fault{Value: Excerpt(string(text), mostOfText), Want: want}
	}
	if path, twice := RepeatedKey(text); twice {
		return &Fault{Path: path, Value: "repeated key", Want: "each key of an object once"}
	}
	return nil
}

// RepeatedKey returns the path of a key that an object in a JSON text has twice. Nothing shows which of the two was
// meant. The text is known to be JSON.
func RepeatedKey(raw []byte) (path Path, found bool) {
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	up, found := repeatedKey(in)
	for _, s := range slices.Backward(up) {
		if path = path.Key(s.key); s.isIndex {
			path = path.Parent().Index(s.index)
		}
	}
	return path, found
}

// repeatedKey reads one value. The steps of the path, the last one first, are made only if there is one: a text may
// have millions of values.
func repeatedKey(in *json.Decoder) (up []step, found bool) {
	begin, _ := in.Token() // the text is JSON
	object := begin == json.Delim('{')
	var keys map[string]bool
	for i := 0; (object || begin == json.Delim('[')) && in.More(); i++ {
		name := ""
		if object {
			key, _ := in.Token()
			name, _ = key.(string)
			if keys == nil {
				keys = map[string]bool{}
			}
			found, keys[name] = keys[name], true
		}
		if !found {
			up, found = repeatedKey(in)
		}
		if found {
			return append(up, step{key: name, index: i, isIndex: !object}), true
		}
	}
	if _, opened := begin.(json.Delim); opened {
		_, _ = in.Token() // its end
	}
	return nil, false
}
