package engine

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Default bounds of a History: the 200 latest decisions about each RayCluster, and 64 MiB for all together. A decision
// about a hundred nodes takes about 6 KiB.
const (
	defaultHistoryEntries = 200
	defaultHistoryBytes   = 64 << 20
)

// History keeps the latest decisions about each RayCluster that differ from the one before, each with its snapshot, so
// that it can be planned again. It is empty after a restart. Its methods are safe for concurrent use.
type History struct {
	entries, bytes int

	mu    sync.Mutex // guards what follows
	rings map[nodepool.ClusterKey]*clusterEntries
	used  int
}

// clusterEntries holds the decisions about one RayCluster, oldest first.
type clusterEntries struct {
	entries []stored
	bytes   int
	// last is the goal of the latest decision.
	last   goal
	lastID int64
}

// stored is a decision in compressed form, so that the bound of a History is one of memory.
type stored struct {
	id int64
	// past is the entry without its ID. Both are compressed JSON.
	past, snapshot []byte
}

// storedOverhead is what a stored decision takes beside its bytes, with the spare room of a growing slice.
const storedOverhead = 2 * 64

// size is the memory that it takes. The allocator rounds up by an eighth at most.
func (k stored) size() int { return storedOverhead + (len(k.past)+len(k.snapshot))*9/8 }

// newHistory returns an empty History with at most that many decisions about each RayCluster and that many bytes of
// memory in all; 0 uses the default. The latest decision about each RayCluster is kept whatever its size.
func newHistory(entries, bytes int) *History {
	return &History{entries: cmp.Or(entries, defaultHistoryEntries), bytes: cmp.Or(bytes, defaultHistoryBytes),
		rings: map[nodepool.ClusterKey]*clusterEntries{}}
}

// Observe keeps a decision that did something, or wants something else than the one before.
func (h *History) Observe(d *addon.Decision) error {
	if d.ObserveFailed {
		return nil
	}
	now := goalOf(d)
	p := &d.Plan
	unmet := len(p.InfeasibleRequests) + len(p.InfeasibleGangRequests) + len(p.InfeasibleRequestResources)
	past := apiv1.HistoryEntry{
		At: d.At.UTC(), Mode: d.Mode, Unmet: unmet, Error: d.Err,
		Decisions: []apiv1.Decision{}, Groups: []apiv1.HistoryGroup{},
	}
	for _, action := range d.Actions {
		if !action.ScalesNothing() {
			past.Decisions = append(past.Decisions, api.ChangeOf(action))
		}
	}
	for _, g := range d.Plan.Groups {
		past.Groups = append(past.Groups, apiv1.HistoryGroup{
			Name: g.Name, Current: g.Current, Desired: g.Desired, Reasons: append([]planner.Reason{}, g.Reasons...),
		})
	}
	if !h.differs(d.Cluster, past, now) {
		return nil
	}
	var entry stored
	var err error
	if entry.past, err = compress(past); err == nil {
		entry.snapshot, err = compress(d.Snapshot)
	}
	if err != nil {
		return fmt.Errorf("storing a decision about %s in the history: %w", d.Cluster, err)
	}
	h.add(d.Cluster, d.At, entry, now)
	return nil
}

func (h *History) differs(key nodepool.ClusterKey, past apiv1.HistoryEntry, now goal) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[key]
	return r == nil || len(r.entries) == 0 || len(past.Decisions) > 0 || r.last != now
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
	r.entries, r.last = append(r.entries, entry), now
	r.bytes += entry.size()
	h.used += entry.size()
	if len(r.entries) > h.entries {
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

// largest returns the entries that take the most memory, of RayClusters with more than one.
func (h *History) largest() *clusterEntries {
	var most *clusterEntries
	for _, r := range h.rings {
		if len(r.entries) > 1 && (most == nil || r.bytes > most.bytes) {
			most = r
		}
	}
	return most
}

func (h *History) dropOldest(r *clusterEntries) {
	size := r.entries[0].size()
	r.entries = slices.Delete(r.entries, 0, 1)
	r.bytes -= size
	h.used -= size
}

// Forget drops the history of a RayCluster that is gone.
func (h *History) Forget(key nodepool.ClusterKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rings[key]; r != nil {
		h.used -= r.bytes
		delete(h.rings, key)
	}
}

// Entries returns the history of a RayCluster, newest first. An ID is a decimal number that grows from one decision
// about a RayCluster to the next, even across restarts: milliseconds since 1970.
func (h *History) Entries(key nodepool.ClusterKey) []apiv1.HistoryEntry {
	entries := h.storedOf(key)
	pasts := make([]apiv1.HistoryEntry, len(entries))
	for i, entry := range entries {
		pasts[len(entries)-1-i] = entry.entry()
	}
	return pasts
}

func (h *History) storedOf(key nodepool.ClusterKey) []stored {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rings[key]; r != nil {
		return slices.Clone(r.entries)
	}
	return nil
}

// Past returns the snapshot of a decision: planning it with its own policy returns the plan again, byte for byte.
func (h *History) Past(key nodepool.ClusterKey, id string) (snapshot json.RawMessage, known bool, err error) {
	for _, entry := range h.storedOf(key) {
		if strconv.FormatInt(entry.id, 10) == id {
			if err := decompress(entry.snapshot, &snapshot); err != nil {
				return nil, true, fmt.Errorf("decompressing decision %s: %w", id, err)
			}
			return snapshot, true, nil
		}
	}
	return nil, false, nil
}

// entry returns the entry. If it cannot be read, its Error says so.
func (k stored) entry() apiv1.HistoryEntry {
	var past apiv1.HistoryEntry
	if err := decompress(k.past, &past); err != nil {
		past = apiv1.HistoryEntry{At: time.UnixMilli(k.id).UTC(), Decisions: []apiv1.Decision{},
			Groups: []apiv1.HistoryGroup{}, Error: fmt.Sprintf("this decision can no longer be read: %v", err)}
	}
	past.ID = strconv.FormatInt(k.id, 10)
	return past
}

// compressors are reused: each holds most of a MiB.
var compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	return w
}}

// compress returns a value as JSON, compressed.
func compress(value any) ([]byte, error) {
	var out bytes.Buffer
	writer := compressors.Get().(*gzip.Writer)
	defer compressors.Put(writer)
	writer.Reset(&out)
	if err := json.NewEncoder(writer).Encode(value); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(out.Bytes()), nil
}

func decompress(out []byte, into any) error {
	reader, err := gzip.NewReader(bytes.NewReader(out))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// goal is a hash of what a decision wants: equal for decisions that want the same. Pods that start as planned change
// nothing.
type goal [sha256.Size]byte

func goalOf(d *addon.Decision) goal {
	wanted := []any{d.Mode, d.Err, fmt.Sprint(d.Plan.Launch), telemetry.Unmet(&d.Plan)}
	for _, g := range d.Plan.Groups {
		wanted = append(wanted, g.Name, g.Desired)
	}
	for _, t := range d.Plan.Terminate {
		wanted = append(wanted, t.Reason, t.Pod)
	}
	text, _ := json.Marshal(wanted) // texts and numbers always have an encoding
	return sha256.Sum256(text)
}
