package snapshotfile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// repeatedKey returns the path to a key that one object of the text has twice: which of the two was meant, nobody can
// tell. The text is known to be JSON, so only what distinguishes keys from values is looked at.
func repeatedKey(raw []byte) (path string, found bool) {
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
	return "", false
}

// stringEnd returns where the string that begins at i ends, behind its closing quote.
func stringEnd(raw []byte, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// keyScan walks over a text and holds the keys of all objects that are open.
type keyScan struct {
	raw    []byte
	levels []level
	keys   []span
}

// level is an open object or list. Its keys are those from its first on, up to the next level's first.
type level struct {
	object        bool
	from, element int
}

// span is a quoted key's place in the text; 8 bytes, because a hostile text may have millions.
type span struct{ from, to uint32 }

func (s *keyScan) key(at span) []byte {
	quoted := s.raw[at.from:at.to]
	key := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(key, '\\') < 0 && utf8.Valid(key) {
		return key
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // it is a string of a text that is JSON
	return []byte(text)
}

// enter holds a key of the innermost level. Of objects with more members than are read only the last is kept beyond
// them.
func (s *keyScan) enter(key span) {
	if top := s.levels[len(s.levels)-1]; len(s.keys)-top.from > mostMembers {
		s.keys = s.keys[:len(s.keys)-1]
	}
	s.keys = append(s.keys, key)
}

// leave closes the innermost level and returns a key that it has twice. Objects with more members than are read are let
// pass: they are refused where they are read, and ignored where not.
func (s *keyScan) leave() (key []byte, twice bool) {
	top := s.levels[len(s.levels)-1]
	own := s.keys[top.from:]
	if len(own) > 1 && len(own) <= mostMembers {
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

// path leads to a key of the innermost level.
func (s *keyScan) path(key []byte) string {
	var path strings.Builder
	for i, at := range s.levels {
		if !at.object {
			path.WriteString("[" + strconv.Itoa(at.element) + "]")
			continue
		}
		name := key
		if i < len(s.levels)-1 {
			name = s.key(s.keys[s.levels[i+1].from-1])
		}
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.Write(name)
	}
	return path.String()
}
