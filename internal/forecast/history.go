package forecast

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

const (
	// version is the first byte of an encoded history.
	version = 1
	// mostEncoded bounds the bytes of an encoded history. A ConfigMap has 1 MiB, and stores bytes as base64 text.
	mostEncoded = 512 << 10
	// mostName is the longest name of a group that is remembered.
	mostName = 253
	// mostGroups bounds the groups of one RayCluster.
	mostGroups = 4096
)

// History is how many workers each group of one RayCluster needed. Its zero value is empty. It is not safe for
// concurrent use.
type History struct{ lines map[string]*Line }

// Observe adds what the groups of the RayCluster need at a moment, by name. It forgets groups that were not seen for
// Span.
func (h *History) Observe(at time.Time, workers map[string]int) {
	if h.lines == nil {
		h.lines = make(map[string]*Line, len(workers))
	}
	for name, n := range workers {
		l := h.lines[name]
		if l == nil {
			if name == "" || len(name) > mostName || !utf8.ValidString(name) || len(h.lines) >= mostGroups {
				continue
			}
			l = &Line{}
			h.lines[name] = l
		}
		l.Observe(at, n)
	}
	if len(h.lines) > len(workers) { // a group is gone
		oldest := slotOf(at) - spanSlots
		maps.DeleteFunc(h.lines, func(_ string, l *Line) bool { return l.to < oldest })
	}
}

// Follow adds what a later history has seen, which may overlap. Its last slots stay open for more.
func (h *History) Follow(later *History) {
	if h.lines == nil {
		h.lines = make(map[string]*Line, len(later.lines))
	}
	for name, l := range later.lines {
		if h.lines[name] == nil {
			if len(h.lines) < mostGroups {
				h.lines[name] = l
			}
			continue
		}
		h.lines[name].follow(l)
	}
}

// Series returns the series of a group; an empty one if it is not known.
func (h *History) Series(group string) Series {
	if l := h.lines[group]; l != nil {
		return l.Series()
	}
	return Series{}
}

// Seen returns from when until when the history reaches; zero times if it is empty.
func (h *History) Seen() (from, to time.Time) {
	for _, l := range h.lines {
		if begins := slotStart(max(l.first, l.to-spanSlots)); from.IsZero() || begins.Before(from) {
			from = begins
		}
		if ends := slotStart(l.to); ends.After(to) {
			to = ends
		}
	}
	return from, to
}

// Encode returns the history as bytes that Decode reads. Groups that would make it too long are left out, the last by
// name first.
func (h *History) Encode() []byte {
	out := []byte{version}
	for _, name := range slices.Sorted(maps.Keys(h.lines)) {
		l := h.lines[name]
		runs := appendRun(slices.Clone(l.closed), l.to-l.from, l.workers-l.end)
		group := binary.AppendUvarint(nil, uint64(len(name)))
		group = append(group, name...)
		group = binary.AppendUvarint(group, uint64(l.first))
		group = binary.AppendUvarint(group, uint64(len(runs)))
		if group = append(group, runs...); len(out)+len(group) > mostEncoded {
			continue
		}
		out = append(out, group...)
	}
	return out
}

// Decode reads what Encode returned.
func Decode(encoded []byte) (*History, error) {
	h := &History{lines: map[string]*Line{}}
	switch {
	case len(encoded) == 0:
		return nil, errors.New("reading a history of demand: it is empty")
	case encoded[0] != version:
		return nil, fmt.Errorf("reading a history of demand: its version is %d, want %d", encoded[0], version)
	case len(encoded) > mostEncoded:
		return nil, fmt.Errorf("reading a history of demand: it has %d bytes, want at most %d", len(encoded),
			mostEncoded)
	}
	r := reader{left: encoded[1:]}
	for last := ""; len(r.left) > 0; {
		name := string(r.bytes("the length of a group's name", mostName))
		switch {
		case r.err != nil:
		case name == "" || !utf8.ValidString(name):
			r.fail("the name of a group is %q, want text", name)
		case name <= last:
			r.fail("group %s comes after group %s, want each name once, in order", name, last)
		case len(h.lines) == mostGroups:
			r.fail("it has more than %d groups", mostGroups)
		}
		line := r.line()
		if r.err != nil && name != "" {
			return nil, fmt.Errorf("reading a history of demand: group %s: %w", name, r.err)
		}
		if r.err != nil {
			return nil, fmt.Errorf("reading a history of demand: %w", r.err)
		}
		h.lines[name], last = line, name
	}
	return h, nil
}

// reader reads numbers up to the first error.
type reader struct {
	left []byte
	err  error
}

func (r *reader) fail(format string, values ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, values...)
	}
}

// number reads a number from 0 to a maximum.
func (r *reader) number(what string, most int64) int64 {
	if r.err != nil {
		return 0
	}
	n, length := binary.Uvarint(r.left)
	if length <= 0 {
		r.fail("%s is cut off or too long", what)
		return 0
	}
	if n > uint64(most) {
		r.fail("%s is %d, want at most %d", what, n, most)
		return 0
	}
	r.left = r.left[length:]
	return int64(n)
}

// bytes reads a length and that many bytes.
func (r *reader) bytes(what string, most int64) []byte {
	n := r.number(what, most)
	if r.err == nil && n > int64(len(r.left)) {
		r.fail("%s is %d, and only %d bytes follow", what, n, len(r.left))
	}
	if r.err != nil {
		return nil
	}
	read := r.left[:n]
	r.left = r.left[n:]
	return read
}

// latestSlot is in the year 3000: a later one is a mistake.
const latestSlot = 32503680000 / slotSeconds

// line reads the runs of a group.
func (r *reader) line() *Line {
	first := r.number("the first slot", latestSlot)
	encoded := reader{left: r.bytes("the length of the runs", 2*mostLine), err: r.err}
	var runs []run
	for at, workers := first, 0; len(encoded.left) > 0 && encoded.err == nil; {
		length := encoded.number("the length of a run", spanSlots+slack)
		difference, n := binary.Varint(encoded.left)
		if encoded.err == nil && n <= 0 {
			encoded.fail("the number of workers of a run is cut off or too long")
		}
		if encoded.err != nil {
			break
		}
		encoded.left = encoded.left[n:]
		next := int64(workers) + difference
		switch {
		case length == 0:
			encoded.fail("a run is 0 slots long, want 1 or more")
		case at+length-first > spanSlots+slack:
			encoded.fail("it is %d slots long, want at most %d", at+length-first, spanSlots+slack)
		case difference < -MostWorkers-1 || difference > MostWorkers+1 || next < unknown || next > MostWorkers:
			encoded.fail("a run has %d workers, want %d to %d", next, unknown, MostWorkers)
		}
		workers = int(next)
		runs = append(runs, run{at, at + length, workers})
		at += length
	}
	if r.err = encoded.err; r.err == nil && len(runs) == 0 {
		r.fail("it has no runs")
	}
	l := &Line{}
	if r.err == nil {
		l.rebuild(runs)
		l.bound()
	}
	return l
}
