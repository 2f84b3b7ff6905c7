// Package history keeps what decisions add up to over time: the latest different decisions about each RayCluster, and
// in shadow mode the comparison of Heliostat's plan with what another autoscaler writes. It only reads decisions. It
// must not influence them.
package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Bounds of a History that says nothing else: the 200 latest of each RayCluster, and 64 MiB for all of them together. A decision
// about a hundred nodes takes about 6 KiB.
const (
	defaultHistoryEntries = 200
	defaultHistoryBytes   = 64 << 20
)

// History remembers the last decisions about each RayCluster that were not the same as the one before, each with the snapshot it
// was made from, so that it can be planned again. It is empty after a restart. Its methods may be called at any time.
type History struct {
	entries, bytes int

	mu    sync.Mutex // guards what follows
	rings map[nodepool.ClusterKey]*clusterEntries
	used  int
}

// clusterEntries holds the decisions about one RayCluster, oldest first.
type clusterEntries struct {
	kept  []stored
	bytes int
	// last is what the latest one wants.
	last goal
	// lastID is the id given last.
	lastID int64
}

// stored is a decision as it is remembered: packed, so that the bound of a History is one of memory.
type stored struct {
	id int64
	// past is a Past, document a Document, both JSON and gzip.
	past, document []byte
}

// keptOverhead is what a kept takes beside its bytes, with the room that a growing slice has to spare.
const keptOverhead = 2 * 64

// size is the memory that a kept takes. The allocator rounds up by an eighth at most.
func (k stored) size() int { return keptOverhead + (len(k.past)+len(k.document))*9/8 }

// Entry is a decision of the past. Nobody changes it.
type Entry struct {
	// ID is a number in decimal that grows from one decision about a RayCluster to the next, restarts included: milliseconds since 1970.
	ID   string        `json:"-"`
	At   time.Time     `json:"at"`
	Mode nodepool.Mode `json:"mode"`
	// Actions are what was carried out, reports to Ray aside; none where nothing was, for whatever reason.
	Actions []decision.Action `json:"actions"`
	Groups  []EntryGroup      `json:"groups"`
	// Unmet counts the entries of demand that were not served.
	Unmet int    `json:"unmet"`
	Err   string `json:"err"`
	// document is the snapshot and the plan, packed.
	document []byte
}

// EntryGroup is what a decision of the past says of one worker group.
type EntryGroup struct {
	Name    string           `json:"name"`
	Current int              `json:"current"`
	Desired int              `json:"desired"`
	Reasons []planner.Reason `json:"reasons"`
}

// Source is what a Past was made from, and what it came to.
type Source struct {
	Snapshot json.RawMessage `json:"snapshot"`
	Plan     json.RawMessage `json:"plan"`
}

// NewHistory returns an empty History of at most that many decisions about each RayCluster and that many bytes of memory in
// all; 0 takes the default. The latest decision about each is kept whatever its size.
func NewHistory(entries, bytes int) *History {
	if entries <= 0 {
		entries = defaultHistoryEntries
	}
	if bytes <= 0 {
		bytes = defaultHistoryBytes
	}
	return &History{entries: entries, bytes: bytes, rings: map[nodepool.ClusterKey]*clusterEntries{}}
}

// Observe remembers a decision that did something, or wants something else than the one before.
func (h *History) Observe(d *decision.Decision) error {
	if d.ObserveFailed {
		return nil
	}
	now := goalOf(d)
	past := Entry{At: d.At, Mode: d.Mode, Actions: withoutReports(d.Actions), Groups: pastGroups(d.Plan.Groups), Unmet: unmetEntries(&d.Plan), Err: d.Err}
	if !h.differs(d.Cluster, past, now) {
		return nil
	}
	var entry stored
	var err error
	if entry.past, err = compress(past); err == nil {
		entry.document, err = compress(struct {
			Snapshot planner.Snapshot `json:"snapshot"`
			Plan     planner.Plan     `json:"plan"`
		}{d.Snapshot, d.Plan})
	}
	if err != nil {
		return fmt.Errorf("remembering a decision about %s: %w", d.Cluster, err)
	}
	h.add(d.Cluster, d.At, entry, now)
	return nil
}

func (h *History) differs(key nodepool.ClusterKey, past Entry, now goal) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[key]
	return r == nil || len(r.kept) == 0 || len(past.Actions) > 0 || r.last != now
}

func (h *History) add(key nodepool.ClusterKey, at time.Time, entry stored, now goal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[key]
	if r == nil {
		r = &clusterEntries{}
		h.rings[key] = r
	}
	r.lastID = max(at.UnixMilli(), r.lastID+1)
	entry.id = r.lastID
	r.kept, r.last = append(r.kept, entry), now
	r.bytes += entry.size()
	h.used += entry.size()
	if len(r.kept) > h.entries {
		h.dropOldest(r)
	}
	for h.used > h.bytes {
		largest := h.largest()
		if largest == nil {
			return
		}
		h.dropOldest(largest)
	}
}

// largest is the ring that takes the most room of those that have more than their latest decision.
func (h *History) largest() *clusterEntries {
	var most *clusterEntries
	for _, r := range h.rings {
		if len(r.kept) > 1 && (most == nil || r.bytes > most.bytes) {
			most = r
		}
	}
	return most
}

func (h *History) dropOldest(r *clusterEntries) {
	size := r.kept[0].size()
	r.kept = slices.Delete(r.kept, 0, 1)
	r.bytes -= size
	h.used -= size
}

// Forget drops what is remembered of a RayCluster that is gone.
func (h *History) Forget(key nodepool.ClusterKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rings[key]; r != nil {
		h.used -= r.bytes
		delete(h.rings, key)
	}
}

// Entries returns what is remembered of a RayCluster, newest first.
func (h *History) Entries(key nodepool.ClusterKey) []Entry {
	entries := h.keptOf(key)
	pasts := make([]Entry, len(entries))
	for i, entry := range entries {
		pasts[len(entries)-1-i] = entry.entry()
	}
	return pasts
}

func (h *History) keptOf(key nodepool.ClusterKey) []stored {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rings[key]; r != nil {
		return slices.Clone(r.kept)
	}
	return nil
}

// Entry returns one decision by its ID.
func (h *History) Entry(key nodepool.ClusterKey, id string) (Entry, bool) {
	for _, entry := range h.keptOf(key) {
		if strconv.FormatInt(entry.id, 10) == id {
			return entry.entry(), true
		}
	}
	return Entry{}, false
}

// entry is the Past. One that cannot be read says so where an error of the decision would stand.
func (k stored) entry() Entry {
	var past Entry
	if err := decompress(k.past, &past); err != nil {
		past = Entry{At: time.UnixMilli(k.id), Err: fmt.Sprintf("this decision can no longer be read: %v", err)}
	}
	past.ID, past.document = strconv.FormatInt(k.id, 10), k.document
	return past
}

// Source unpacks what a decision was made from: planning Snapshot by its own policy makes Plan again, byte for byte.
func (p Entry) Source() (Source, error) {
	var document Source
	if err := decompress(p.document, &document); err != nil {
		return document, fmt.Errorf("unpacking decision %s: %w", p.ID, err)
	}
	return document, nil
}

func pastGroups(groups []planner.GroupPlan) []EntryGroup {
	past := make([]EntryGroup, len(groups))
	for i, g := range groups {
		past[i] = EntryGroup{g.Name, g.Current, g.Desired, g.Reasons}
	}
	return past
}

func unmetEntries(p *planner.Plan) int {
	return len(p.InfeasibleRequests) + len(p.InfeasibleGangRequests) + len(p.InfeasibleRequestResources)
}

func withoutReports(actions []decision.Action) []decision.Action {
	return slices.DeleteFunc(slices.Clone(actions), decision.Action.ReportsOnly)
}
