package fieldpath

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
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
// meant. The text is known to be JSON, so the scan looks only for what separates keys from values.
func RepeatedKey(raw []byte) (path Path, found bool) {
	s := keyScan{raw: raw}
	isKey := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case '{', '[':
			s.levels = append(s.levels, level{object: c == '{', from: len(s.keys)})
			isKey = c == '{'
		case ',':
			top := &s.levels[len(s.levels)-1]
			isKey = top.object
			top.element++
		case '"':
			end := stringEnd(raw, i)
			if isKey {
				s.enter(span{uint32(i), uint32(end)})
				isKey = false
			}
			i = end - 1
		case '}', ']':
			if key, twice := s.leave(); twice {
				return s.path(key), true
			}
			isKey = false
		}
	}
	return Path{}, false
}

// stringEnd returns the index behind the closing quote of the string that begins at i.
func stringEnd(raw []byte, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// keyScan holds the keys of all open objects.
type keyScan struct {
	raw    []byte
	levels []level
	keys   []span
}

// level is an open object or list. Its keys begin at from and end where those of the next level begin.
type level struct {
	object        bool
	from, element int
}

// span is where a quoted key is in the text. It takes 8 bytes, because a hostile text may have millions of keys.
type span struct{ from, to uint32 }

func (s *keyScan) key(at span) []byte {
	quoted := s.raw[at.from:at.to]
	key := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(key, '\\') < 0 && utf8.Valid(key) {
		return key
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // the text is JSON, so this string is, too
	return []byte(text)
}

// enter adds a key to the innermost level. Beyond MostMembers keys, each one replaces the last.
func (s *keyScan) enter(key span) {
	if top := s.levels[len(s.levels)-1]; len(s.keys)-top.from > MostMembers {
		s.keys = s.keys[:len(s.keys)-1]
	}
	s.keys = append(s.keys, key)
}

// leave closes the innermost level and returns a key that it has twice. It accepts objects with more than MostMembers
// keys: reading them is a fault, and if nobody reads them they do not matter.
func (s *keyScan) leave() (key []byte, twice bool) {
	top := s.levels[len(s.levels)-1]
	own := s.keys[top.from:]
	if len(own) > 1 && len(own) <= MostMembers {
		slices.SortFunc(own, func(a, b span) int { return bytes.Compare(s.key(a), s.key(b)) })
		for i := 1; i < len(own); i++ {
			if key := s.key(own[i]); bytes.Equal(key, s.key(own[i-1])) {
				return key, true
			}
		}
	}
	s.keys, s.levels = s.keys[:top.from], s.levels[:len(s.levels)-1]
	return nil, false
}

// path returns the path of a key of the innermost level.
func (s *keyScan) path(key []byte) (path Path) {
	for i, at := range s.levels {
		switch {
		case !at.object:
			path = path.Index(at.element)
		case i < len(s.levels)-1:
			path = path.Key(string(s.key(s.keys[s.levels[i+1].from-1])))
		default:
			path = path.Key(string(key))
		}
	}
	return path
}
