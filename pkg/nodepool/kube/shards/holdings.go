package shards

import (
	"fmt"
	"maps"
	"slices"
)

// Holdings are the keys that a member owns, each since a term: a text that nothing else in the fleet ever has. Each
// patch of an object tests the term that the object carries, and writes its own (Fence). So the terms of the writers of
// an object never interleave, whatever clocks do and however late a patch arrives.
type Holdings struct {
	id    string
	terms int
	held  map[string]*hold
}

// hold is one key in one term.
type hold struct {
	term string
	// from is the term that the first patches test, and tries how many of them may have been stored.
	from  string
	tries int
	// lost: another term was written since.
	lost bool
}

// NewHoldings returns the holdings of a member that owns nothing.
func NewHoldings(id string) *Holdings { return &Holdings{id: id, held: map[string]*hold{}} }

// Update brings the holdings up to date after a reading, and returns what has changed. keys are all that exist. A key
// whose term was lost, and that is owned by that reading, begins a new term.
func (h *Holdings) Update(keys []string, owns func(string) bool) (gained, lost []string) {
	lost = h.Drop(owns)
	h.forget(keys)
	for _, key := range keys {
		known := h.held[key]
		if known != nil && !known.lost {
			continue
		}
		if h.begin(key, owns) && known == nil {
			gained = append(gained, key)
		}
	}
	return gained, lost
}

// Drop ends the terms of keys that are not owned any more, and returns the keys.
func (h *Holdings) Drop(owns func(string) bool) (lost []string) {
	for _, key := range slices.Sorted(maps.Keys(h.held)) {
		if !owns(key) {
			delete(h.held, key)
			lost = append(lost, key)
		}
	}
	return lost
}

// forget ends the terms of keys that are gone.
func (h *Holdings) forget(keys []string) {
	known := make(map[string]bool, len(keys))
	for _, key := range keys {
		known[key] = true
	}
	maps.DeleteFunc(h.held, func(key string, _ *hold) bool { return !known[key] })
}

// Holds reports whether a key has a term that was not lost.
func (h *Holdings) Holds(key string) bool {
	known := h.held[key]
	return known != nil && !known.lost
}

// Has reports whether a key has a term, lost or not.
func (h *Holdings) Has(key string) bool { return h.held[key] != nil }

// Begin begins a term for a key that is owned by the last reading, unless it has one; a new object does not wait for
// the next reading.
func (h *Holdings) Begin(key string, owns func(string) bool) {
	if h.held[key] == nil {
		h.begin(key, owns)
	}
}

func (h *Holdings) begin(key string, owns func(string) bool) (begun bool) {
	if !owns(key) {
		return false
	}
	h.terms++
	h.held[key] = &hold{term: fmt.Sprintf("%s.%d", h.id, h.terms)}
	return true
}

// Fence returns the term that a patch must write to the object of a key, whose term is stored now, "" for none; the
// patch must test stored. false: another member has written since this term wrote for the first time, or tried to, so
// this term must write no more.
func (h *Holdings) Fence(key, stored string) (term string, may bool) {
	known := h.held[key]
	switch {
	case known == nil || known.lost:
		return "", false
	case stored == known.term:
		return known.term, true
	case known.tries > 0 && stored != known.from:
		known.lost = true
		return "", false
	}
	known.from = stored
	known.tries++
	return known.term, true
}

// Rejected notes that a patch was certainly not stored, which put a term in place of stored.
func (h *Holdings) Rejected(key, term, stored string) {
	if known := h.held[key]; known != nil && known.term == term && known.from == stored && known.tries > 0 {
		known.tries--
	}
}
