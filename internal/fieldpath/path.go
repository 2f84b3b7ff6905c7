// Package fieldpath reads fields of objects that other people wrote, and knows where each field is. A Value is part of
// a decoded object, such as a RayCluster from the API server: reading it never fails, and faults go to a function. A
// JSON is part of a text, such as a snapshot file: it is read one level at a time within bounds, a Document collects
// the faults, and unknown members are reported with the name that was probably meant.
//
// The package knows no kind of object and no field names. It must not import Kubernetes, files, the network or loggers.
package fieldpath

import (
	"strconv"
	"strings"
)

// Path leads from an object to a field in it, through keys of objects and indexes of lists. The zero Path is the
// object itself. A Path never changes, so paths can share their beginnings.
type Path struct{ last *step }

// step is the last step of a path: a key, or an index where isIndex is set.
type step struct {
	up      *step
	key     string
	index   int
	isIndex bool
}

// NewPath returns the path of nested keys, such as metadata, labels.
func NewPath(keys ...string) Path { return Path{}.Key(keys...) }

// Key returns the path of a member, or of a member of a member. The key "-" of a list means its end in a JSON patch.
func (p Path) Key(keys ...string) Path {
	for _, key := range keys {
		p.last = &step{up: p.last, key: key}
	}
	return p
}

// Index returns the path of an element of a list.
func (p Path) Index(i int) Path { return Path{&step{up: p.last, index: i, isIndex: true}} }

// Parent returns the path without its last step. The parent of the object itself is the object.
func (p Path) Parent() Path {
	if p.last == nil {
		return p
	}
	return Path{p.last.up}
}

// LastKey returns the key of the last step, or nothing if that is an index.
func (p Path) LastKey() string {
	if p.last == nil {
		return ""
	}
	return p.last.key
}

// LastIndex returns the index of the last step, and false if that is a key.
func (p Path) LastIndex() (i int, ok bool) {
	if p.last == nil {
		return 0, false
	}
	return p.last.index, p.last.isIndex
}

// steps returns all steps, the first one first.
func (p Path) steps() []*step {
	n := 0
	for s := p.last; s != nil; s = s.up {
		n++
	}
	all := make([]*step, n)
	for s := p.last; s != nil; s = s.up {
		n--
		all[n] = s
	}
	return all
}

// Prefixes returns the paths from the object itself, which is left out, to p.
func (p Path) Prefixes() []Path {
	steps := p.steps()
	all := make([]Path, len(steps))
	for i, s := range steps {
		all[i] = Path{s}
	}
	return all
}

// String writes the path as people do: spec.workerGroupSpecs[1].replicas. Brackets hold a key that has a dot, a slash
// or a bracket in it: limits["nvidia.com/gpu"].
func (p Path) String() string {
	var text strings.Builder
	for _, s := range p.steps() {
		switch {
		case s.isIndex:
			text.WriteString("[" + strconv.Itoa(s.index) + "]")
		case strings.ContainsAny(s.key, "./[]"):
			text.WriteString("[" + strconv.Quote(s.key) + "]")
		default:
			if text.Len() > 0 {
				text.WriteByte('.')
			}
			text.WriteString(s.key)
		}
	}
	return text.String()
}

// Kind writes the path without the indexes of lists, so that equal fields of all elements have one: nodes[].state.
func (p Path) Kind() string {
	var text strings.Builder
	for _, s := range p.steps() {
		if s.isIndex {
			text.WriteString("[]")
			continue
		}
		text.WriteString("." + s.key)
	}
	return text.String()
}

// Parse reads what String writes. It returns false for a text that is no path. A text from elsewhere may have dots in
// a key without brackets, which Parse reads as several keys.
func Parse(text string) (Path, bool) {
	var path Path
	for rest := text; rest != ""; {
		if !strings.HasPrefix(rest, "[") {
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return Path{}, false
			}
			path = path.Key(rest[:end])
			var dotted bool
			if rest, dotted = strings.CutPrefix(rest[end:], "."); dotted && (rest == "" || rest[0] == '[') {
				return Path{}, false
			}
			continue
		}
		next, after, ok := path.parseBracket(rest[1:])
		if !ok {
			return Path{}, false
		}
		path, rest = next, after
	}
	return path, true
}

// parseBracket reads an index or a quoted key up to the closing bracket, and the dot behind it.
func (p Path) parseBracket(text string) (next Path, rest string, ok bool) {
	inside := text
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		key, err := strconv.Unquote(quoted)
		if err != nil {
			return p, "", false
		}
		next, rest = p.Key(key), text[len(quoted):]
	} else {
		if inside, rest, ok = strings.Cut(text, "]"); !ok {
			return p, "", false
		}
		i, err := strconv.Atoi(inside)
		if err != nil || i < 0 {
			return p, "", false
		}
		next, rest = p.Index(i), "]"+rest
	}
	if rest, ok = strings.CutPrefix(rest, "]"); !ok {
		return p, "", false
	}
	if rest == "" || rest[0] == '[' {
		return next, rest, true
	}
	rest, ok = strings.CutPrefix(rest, ".")
	return next, rest, ok && rest != ""
}
