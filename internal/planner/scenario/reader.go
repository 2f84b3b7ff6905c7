package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// reader parses one entry. It keeps the first problem; after that, every method returns a zero value.
type reader struct {
	tokens []token
	about  string // the object that the entry describes: "group a100"
	err    error
}

func (r *reader) fail(format string, arguments ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s", r.about, fmt.Sprintf(format, arguments...))
		r.tokens = nil
	}
}

func (r *reader) done() bool { return len(r.tokens) == 0 }

// peek returns the next token as written, without its quotes.
func (r *reader) peek() string {
	if r.done() {
		return ""
	}
	if t := r.tokens[0]; t.kind != key {
		return t.text
	}
	return r.tokens[0].text + ":"
}

// accept takes the next token if it is this word or mark.
func (r *reader) accept(text string) bool {
	if r.done() || r.tokens[0].kind == quoted || r.tokens[0].kind == key || r.tokens[0].text != text {
		return false
	}
	r.tokens = r.tokens[1:]
	return true
}

// text takes a word or a quoted text; want describes it.
func (r *reader) text(want string) string {
	switch {
	case r.done():
		r.fail("the line ends: want %s", want)
		return ""
	case r.tokens[0].kind != word && r.tokens[0].kind != quoted:
		r.fail("%q: want %s", r.peek(), want)
		return ""
	}
	taken := r.tokens[0].text
	r.tokens = r.tokens[1:]
	return taken
}

// object reads {key: value, …} and calls read for each key.
func (r *reader) object(want string, read func(name string)) {
	if !r.accept("{") {
		r.fail("%q: want %s", r.peek(), want)
		return
	}
	seen := map[string]bool{}
	for !r.accept("}") {
		if r.done() || r.tokens[0].kind != key {
			r.fail("%q: want KEY: VALUE, or } at the end of %s", r.peek(), want)
			return
		}
		name := r.tokens[0].text
		r.tokens = r.tokens[1:]
		if seen[name] {
			r.fail("%s: the key is there twice: want each key once", name)
		}
		seen[name] = true
		if read(name); r.err != nil {
			return
		}
		if !r.accept(",") && r.peek() != "}" {
			r.fail("%q behind %s: want , or }", r.peek(), name)
		}
	}
}

// array reads [value, …].
func (r *reader) array(want string, read func()) {
	if !r.accept("[") {
		r.fail("%q: want %s", r.peek(), want)
		return
	}
	for r.err == nil && !r.accept("]") {
		if read(); !r.accept(",") && r.peek() != "]" {
			r.fail("%q: want , or ]", r.peek())
		}
	}
}

func (r *reader) integer(what string) int64 {
	text := r.text(what + ", a whole number")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.fail("%s %q: want a whole number", what, text)
	}
	return n
}

func (r *reader) count(what string) int {
	n := r.integer(what)
	if n < 0 {
		r.fail("%s %d: want a whole number from 0", what, n)
	}
	return int(n)
}

func (r *reader) number(what string) float64 {
	text := r.text(what + ", a number")
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 {
		r.fail("%s %q: want a number from 0", what, text)
	}
	return f
}

// seconds reads a number with the unit s.
func (r *reader) seconds(what string) float64 {
	text := r.text(what + " such as 30s")
	digits, found := strings.CutSuffix(text, "s")
	f, err := strconv.ParseFloat(digits, 64)
	if !found || err != nil || f < 0 {
		r.fail("%s %q: want seconds such as 30s", what, text)
	}
	return f
}

func (r *reader) moment(what string) time.Time {
	text := r.text(what + ", a time")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		r.fail("%s %q: want a time such as 2026-01-31T12:00:00Z", what, text)
	}
	return at
}

var memoryUnits = []struct {
	suffix string
	bytes  int64
}{{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}}

// amount reads a quantity: 0.5, or 16Gi for a whole number of GiB in bytes.
func (r *reader) amount(what string) raydemand.Amount {
	text := r.text(what + ", an amount")
	digits, unit := text, int64(1)
	for _, u := range memoryUnits {
		if cut, found := strings.CutSuffix(text, u.suffix); found {
			digits, unit = cut, u.bytes
		}
	}
	a, err := raydemand.ParseAmount(digits)
	if err != nil || a < 0 {
		r.fail("%s %q: want an amount such as 0.5 or 16Gi", what, text)
	}
	return a.Times(unit)
}

func (r *reader) bundle() raydemand.Bundle {
	b := raydemand.Bundle{}
	r.object("resources such as {CPU: 4, memory: 16Gi}", func(name string) { b[name] = r.amount(name) })
	return b
}

func (r *reader) labels() map[string]string {
	labels := map[string]string{}
	r.object("labels such as {zone: a}", func(name string) { labels[name] = r.text("a value for " + name) })
	return labels
}

func (r *reader) selector() raydemand.Selector {
	expressions := map[string]string{}
	r.object(`a selector such as {zone: a} or {zone: "!in(a,b)"}`, func(name string) {
		expressions[name] = r.text("an expression for " + name)
	})
	s, err := raydemand.ParseSelector(expressions)
	if err != nil {
		r.fail("%v", err)
	}
	return s
}

// attributes reads NAME VALUE… until the entry ends.
func (r *reader) attributes(read map[string]func()) {
	seen := map[string]bool{}
	for !r.done() {
		name := r.text("an attribute: " + list(sortedKeys(read)))
		if r.err != nil {
			return
		}
		f := read[name]
		switch {
		case f == nil:
			r.fail("%q: want %s", name, list(sortedKeys(read)))
			return
		case seen[name] && name != "pool" && name != "activity" && name != "announces":
			r.fail("%s is there twice: want it once", name)
			return
		}
		seen[name] = true
		f()
	}
}
