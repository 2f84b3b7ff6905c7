package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// maxFieldErrors bounds how many bad fields one answer names: enough to mend a body, not a mirror for a hostile one.
const maxFieldErrors = 20

// maxShown bounds how much of a bad value is repeated.
const maxShown = 60

// errSyntax ends the reading of a body that is not JSON; the fault has been noted.
var errSyntax = errors.New("not JSON")

// decoder reads JSON token by token and notes every bad field with its path. Unlike json.Unmarshal it refuses unknown
// and repeated fields, names are compared exactly, and nesting costs no stack: what is not expected is skipped in a loop.
type decoder struct {
	tokens *json.Decoder
	body   []byte
	faults []apiv1.FieldError
	// maxResources bounds the names in one bundle, maxLabels the labels in one selector.
	maxResources, maxLabels int
}

func newDecoder(body []byte) *decoder {
	d := &decoder{tokens: json.NewDecoder(bytes.NewReader(body)), body: body, maxResources: maxResources, maxLabels: maxResources}
	d.tokens.UseNumber()
	return d
}

// fault notes that the value at path is not what was expected.
func (d *decoder) fault(path, value, expected string) {
	if len(d.faults) < maxFieldErrors {
		d.faults = append(d.faults, apiv1.FieldError{Field: path, Value: shorten(value), Expected: expected})
	}
}

// full reports whether more faults would not be told, so that reading on is useless.
func (d *decoder) full() bool { return len(d.faults) >= maxFieldErrors }

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
	d.faults = append(d.faults, apiv1.FieldError{Value: shorten(near), Expected: fmt.Sprintf("JSON, at byte %d: %v", at, err)})
	return nil, errSyntax
}

// object reads an object; member is called at each member's value and must read it.
func (d *decoder) object(path string, member func(name string) error) error {
	token, err := d.token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		return d.unexpected(path, token, "an object")
	}
	return d.members(path, member)
}

// members reads the rest of an object whose opening brace has been read.
func (d *decoder) members(path string, member func(name string) error) error {
	seen := map[string]bool{}
	for d.tokens.More() {
		token, err := d.token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // the JSON grammar allows nothing else here
		if seen[name] {
			d.fault(join(path, name), "", "a field that is written once")
			if err := d.skip(); err != nil {
				return err
			}
			continue
		}
		seen[name] = true
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// elements reads the rest of an array whose opening bracket has been read. Beyond limit elements are noted and skipped.
func (d *decoder) elements(path string, limit int, element func(path string) error) error {
	count := 0
	for d.tokens.More() {
		var err error
		if count++; count > limit || d.full() {
			err = d.skip()
		} else {
			err = element(path + "[" + strconv.Itoa(count-1) + "]")
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

// array reads an array.
func (d *decoder) array(path string, limit int, element func(path string) error) error {
	token, err := d.token()
	if err != nil {
		return err
	}
	return d.arrayFrom(token, path, limit, element)
}

// arrayOrNull reads an array, or null, which is the same as leaving the field out.
func (d *decoder) arrayOrNull(path string, limit int, element func(path string) error) error {
	token, err := d.token()
	if err != nil || token == nil {
		return err
	}
	return d.arrayFrom(token, path, limit, element)
}

// arrayFrom reads an array whose first token has been read.
func (d *decoder) arrayFrom(token json.Token, path string, limit int, element func(path string) error) error {
	if token != json.Delim('[') {
		return d.unexpected(path, token, "an array")
	}
	return d.elements(path, limit, element)
}

// unexpected notes a value of the wrong type, whose first token has been read, and skips the rest of it.
func (d *decoder) unexpected(path string, token json.Token, expected string) error {
	d.fault(path, show(token), expected)
	if delim, ok := token.(json.Delim); ok && (delim == '{' || delim == '[') {
		return d.skipRest()
	}
	return nil
}

// skip reads over one whole value.
func (d *decoder) skip() error {
	token, err := d.token()
	if err != nil {
		return err
	}
	if delim, ok := token.(json.Delim); ok && (delim == '{' || delim == '[') {
		return d.skipRest()
	}
	return nil
}

// skipRest reads to the end of an object or array that was just opened.
func (d *decoder) skipRest() error {
	for depth := 1; depth > 0; {
		token, err := d.token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// end checks that nothing follows the value.
func (d *decoder) end() {
	at := d.tokens.InputOffset()
	if rest := bytes.TrimSpace(d.body[at:]); len(rest) > 0 {
		d.fault("", string(rest), "nothing after the JSON value")
	}
}

func join(path, name string) string {
	if path == "" {
		return shorten(name)
	}
	return path + "." + shorten(name)
}

// show writes a token as it stands in the body.
func show(token json.Token) string {
	switch t := token.(type) {
	case nil:
		return "null"
	case json.Delim:
		return map[json.Delim]string{'{': "an object", '[': "an array"}[t]
	case string:
		return strconv.Quote(shorten(t))
	default:
		return fmt.Sprint(t)
	}
}

// shorten cuts text to maxShown bytes at a rune's border.
func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
