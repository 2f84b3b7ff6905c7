package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/fieldpath"
)

// errSyntax stops the decoding of a body that is not JSON; the fault is recorded.
var errSyntax = errors.New("not JSON")

// decoder decodes JSON token by token and records every bad field with its path. Unlike json.Unmarshal it refuses
// unknown and repeated fields, and compares names exactly. It needs no stack for nested values: it skips unknown ones
// in a loop. Unlike fieldpath.JSON it does not stop at the first fault, because an answer lists many.
type decoder struct {
	tokens *json.Decoder
	body   []byte
	faults []apiv1.FieldError
	// maxResources is the limit of names in one bundle, maxLabels of labels in one selector.
	maxResources, maxLabels int
	// text counts the characters of resource names, labels and expressions, values the values of labels.
	text, values int
}

func newDecoder(body []byte) *decoder {
	tokens := json.NewDecoder(bytes.NewReader(body))
	tokens.UseNumber()
	return &decoder{tokens: tokens, body: body, maxResources: maxResources, maxLabels: maxResources}
}

// fault records that the value at path is not what was expected.
func (d *decoder) fault(path fieldpath.Path, value, expected string) {
	if !d.full() {
		fault := apiv1.FieldError{Field: path.String(), Value: shorten(value), Expected: expected}
		d.faults = append(d.faults, fault)
	}
}

// full reports whether the answer has no room for more faults, so that there is no need to check more.
func (d *decoder) full() bool { return len(d.faults) >= maxFields }

func (d *decoder) token() (json.Token, error) {
	token, err := d.tokens.Token()
	if err == nil {
		return token, nil
	}
	at := d.tokens.InputOffset()
	near := string(bytes.TrimSpace(d.body[min(at, int64(len(d.body))):]))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		near = "end of body"
	}
	return nil, d.syntax(near, err)
}

// syntax records a syntax error. The answer always names it, however many other faults there are.
func (d *decoder) syntax(near string, err error) error {
	expected := fmt.Sprintf("JSON, at byte %d: %v", d.tokens.InputOffset(), err)
	d.faults = append(d.faults, apiv1.FieldError{Value: shorten(near), Expected: expected})
	return errSyntax
}

// object decodes an object. It calls member at each member's value, which member must decode.
func (d *decoder) object(path fieldpath.Path, member func(name string, path fieldpath.Path) error) error {
	token, err := d.token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		return d.unexpected(path, token, "an object {…}")
	}
	return d.members(path, member)
}

// members decodes the rest of an object after its opening brace.
func (d *decoder) members(path fieldpath.Path, member func(name string, path fieldpath.Path) error) error {
	seen := map[string]bool{}
	for d.tokens.More() {
		token, err := d.token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // the JSON grammar allows nothing else here
		at := path.Key(shorten(name))
		if seen[name] {
			d.fault(at, "", "a field that appears once")
			if err := d.skip(); err != nil {
				return err
			}
			continue
		}
		seen[name] = true
		if err := member(name, at); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// unknown records a field that the object does not have, and skips its value.
func (d *decoder) unknown(path fieldpath.Path, known ...string) error {
	d.fault(path, "", fieldpath.WantName(path.LastKey(), known))
	return d.skip()
}

// elements decodes the rest of a list after its opening bracket. It records that there are more elements than limit,
// and skips those.
func (d *decoder) elements(path fieldpath.Path, limit int, element func(path fieldpath.Path) error) error {
	count := 0
	for d.tokens.More() {
		var err error
		if count++; count > limit || d.full() {
			err = d.skip()
		} else {
			err = element(path.Index(count - 1))
		}
		if err != nil {
			return err
		}
	}
	if count > limit {
		d.fault(path, fmt.Sprintf("%d elements", count), fmt.Sprintf("at most %d elements", limit))
	}
	_, err := d.token()
	return err
}

// list decodes a list.
func (d *decoder) list(path fieldpath.Path, limit int, element func(path fieldpath.Path) error) error {
	token, err := d.token()
	if err != nil {
		return err
	}
	return d.listFrom(token, path, limit, element)
}

// listOrNull decodes a list, or null, which means the same as no field.
func (d *decoder) listOrNull(path fieldpath.Path, limit int, element func(path fieldpath.Path) error) error {
	token, err := d.token()
	if err != nil || token == nil {
		return err
	}
	return d.listFrom(token, path, limit, element)
}

func (d *decoder) listFrom(
	token json.Token, path fieldpath.Path, limit int, element func(path fieldpath.Path) error,
) error {
	if token != json.Delim('[') {
		return d.unexpected(path, token, "a list […]")
	}
	return d.elements(path, limit, element)
}

// unexpected records a value of the wrong type, given its first token, and skips the rest of it.
func (d *decoder) unexpected(path fieldpath.Path, token json.Token, expected string) error {
	d.fault(path, tokenText(token), expected)
	return d.skipRest(token)
}

// tokenText returns a token as the body has it.
func tokenText(token json.Token) string {
	switch t := token.(type) {
	case nil:
		return "null"
	case json.Delim:
		return map[json.Delim]string{'{': "an object", '[': "a list"}[t]
	case string:
		return strconv.Quote(shorten(t))
	default:
		return fmt.Sprint(t)
	}
}

// skip skips a whole value.
func (d *decoder) skip() error {
	token, err := d.token()
	if err != nil {
		return err
	}
	return d.skipRest(token)
}

// skipRest skips the rest of a value, given its first token.
func (d *decoder) skipRest(token json.Token) error {
	depth := 0
	for {
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		var err error
		if token, err = d.token(); err != nil {
			return err
		}
	}
}

// raw decodes a whole value as the body has it.
func (d *decoder) raw() (json.RawMessage, error) {
	var raw json.RawMessage
	if err := d.tokens.Decode(&raw); err != nil {
		return nil, d.syntax("", err)
	}
	return raw, nil
}

// nested decodes a value that raw returned; its faults become faults of d.
func (d *decoder) nested(raw json.RawMessage, decode func(inner *decoder)) {
	inner := newDecoder(raw)
	decode(inner)
	for _, f := range inner.faults {
		if !d.full() {
			d.faults = append(d.faults, f)
		}
	}
}

// end checks that nothing follows the value.
func (d *decoder) end() {
	at := d.tokens.InputOffset()
	if rest := bytes.TrimSpace(d.body[at:]); len(rest) > 0 {
		d.fault(fieldpath.Path{}, string(rest), "nothing after the JSON value")
	}
}

// problem returns the problem of all faults, or nil.
func (d *decoder) problem() error {
	if len(d.faults) == 0 {
		return nil
	}
	return invalidFields(d.faults)
}
