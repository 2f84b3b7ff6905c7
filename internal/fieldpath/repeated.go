package fieldpath

import (
	"bytes"
	"encoding/json"
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
	return repeatedKey(in, Path{})
}

// repeatedKey reads one value, which is at a path.
func repeatedKey(in *json.Decoder, at Path) (path Path, found bool) {
	begin, _ := in.Token() // the text is JSON
	keys := map[string]bool{}
	for i := 0; (begin == json.Delim('[') || begin == json.Delim('{')) && in.More(); i++ {
		each := at.Index(i)
		if begin == json.Delim('{') {
			key, _ := in.Token()
			name, _ := key.(string)
			each = at.Key(name)
			if keys[name] {
				return each, true
			}
			keys[name] = true
		}
		if path, found = repeatedKey(in, each); found {
			return path, true
		}
	}
	if _, opened := begin.(json.Delim); opened {
		_, _ = in.Token() // its end
	}
	return Path{}, false
}
