// Package forecast remembers how many workers of each group a RayCluster needed, and says from that how many it will
// need one start time ahead, and why. It must not use a clock, a random source, Kubernetes or files: times are values,
// so a history and a moment always give the same forecast.
package forecast

import (
	"encoding/binary"
	"iter"
	"slices"
	"time"
)

const (
	// Slot is the resolution of a history: it keeps the most workers that were needed in each slot.
	Slot = 5 * time.Minute
	// Span is how far back a history reaches.
	Span = Weeks * 7 * 24 * time.Hour
	// Weeks is Span in weeks.
	Weeks = 4

	slotSeconds = int64(Slot / time.Second)
	spanSlots   = int64(Span / Slot)
	// hour is the coarser resolution, in slots.
	hour = int64(time.Hour / Slot)
)

const (
	// MostWorkers bounds what is remembered of a group; more count as that many.
	MostWorkers = 1_000_000
	// mostLine bounds the bytes of one group. A group that needs another number of workers in every slot takes two
	// bytes for each, so the last four days stay exact beside three weeks of hours.
	mostLine = 4 << 10
	// unknown marks slots in which nobody has seen the RayCluster.
	unknown = -1
	// Holds is how long a number is taken to hold without another observation. A decision stands for 30 s at most in a
	// fleet of moderate size, and longer only where limits on all cycles together stretch it.
	Holds = 10 * time.Minute
)

// Line is how many workers one group needed, slot by slot. It is kept in its encoded form: runs of equal slots, each as
// its length and the difference to the number before. Its zero value is empty. It is not safe for concurrent use.
type Line struct {
	// closed are the runs from slot first up to slot from; end is the number of the last of them.
	closed      []byte
	first, from int64
	end         int
	// The last run is open: it has workers from slot from up to slot to, which is not part of it.
	workers int
	to      int64
	// at is the last observation, in seconds since 1970, and seen what it saw. Both are zero after decoding.
	at   int64
	seen int
}

// run is equal slots, from one up to another that is not part of it.
type run struct {
	from, to int64
	workers  int
}

// slotOf returns the number of the slot of a moment.
func slotOf(at time.Time) int64 {
	seconds := at.Unix()
	slot := seconds / slotSeconds
	if seconds%slotSeconds < 0 {
		slot--
	}
	return slot
}

// slotStart returns the moment at which a slot begins.
func slotStart(slot int64) time.Time { return time.Unix(slot*slotSeconds, 0).UTC() }

// Observe adds that a group needs a number of workers at a moment. It ignores a moment before the last one.
func (l *Line) Observe(at time.Time, workers int) {
	slot, seconds := slotOf(at), at.Unix()
	workers = min(max(workers, 0), MostWorkers)
	switch {
	case slot < 0 || seconds < l.at || slot < l.to-1:
		return
	case l.empty():
		l.first, l.from, l.to, l.workers = slot, slot, slot+1, workers
	case slot == l.to-1:
		l.raise(workers)
	default:
		last, before := l.last()
		if seconds-last <= int64(Holds/time.Second) {
			l.extend(slot, before)
			l.extend(slot+1, max(before, workers))
		} else {
			l.extend(slot, unknown)
			l.extend(slot+1, workers)
		}
		l.bound()
	}
	l.at, l.seen = seconds, workers
}

// last returns the last observation. After decoding, it is the end of the last slot.
func (l *Line) last() (seconds int64, workers int) {
	if l.at == 0 {
		return l.to * slotSeconds, l.workers
	}
	return l.at, l.seen
}

func (l *Line) empty() bool { return l.to == 0 }

// raise raises the last slot to a number of workers.
func (l *Line) raise(workers int) {
	if workers <= l.workers {
		return
	}
	if l.to-l.from == 1 {
		before := l.end
		if l.from == l.first {
			l.workers = workers
			return
		}
		if before == workers { // the slot joins the run before it
			runs := slices.Collect(l.runs())
			runs[len(runs)-1].workers = workers
			l.rebuild(runs)
			return
		}
		l.workers = workers
		return
	}
	l.to--
	l.extend(l.to+1, workers)
}

// extend lets the line end at a slot, with a number of workers since its end so far.
func (l *Line) extend(to int64, workers int) {
	if to <= l.to {
		return
	}
	if workers != l.workers {
		l.closed = appendRun(l.closed, l.to-l.from, l.workers-l.end)
		l.end, l.from, l.workers = l.workers, l.to, workers
	}
	l.to = to
}

// appendRun encodes a run: its length, and the difference to the number of workers before.
func appendRun(to []byte, length int64, difference int) []byte {
	return binary.AppendVarint(binary.AppendUvarint(to, uint64(length)), int64(difference))
}

// runs returns the runs of the line, oldest first.
func (l *Line) runs() iter.Seq[run] {
	return func(yield func(run) bool) {
		if l.empty() {
			return
		}
		at, workers, left := l.first, 0, l.closed
		for len(left) > 0 {
			length, n := binary.Uvarint(left)
			difference, m := binary.Varint(left[n:])
			left = left[n+m:]
			workers += int(difference)
			if !yield(run{at, at + int64(length), workers}) {
				return
			}
			at += int64(length)
		}
		yield(run{l.from, l.to, l.workers})
	}
}

// rebuild replaces the runs of the line. Equal neighbors become one.
func (l *Line) rebuild(runs []run) {
	at, seen := l.at, l.seen
	*l = Line{at: at, seen: seen}
	for _, r := range runs {
		if l.empty() {
			l.first, l.from, l.to, l.workers = r.from, r.from, r.to, r.workers
			continue
		}
		l.extend(r.to, r.workers)
	}
	l.closed = slices.Clip(l.closed)
}

// follow adds a later line. A gap between the two counts as any other.
func (l *Line) follow(later *Line) {
	for r := range later.runs() {
		if r.workers == unknown {
			continue
		}
		for slot := max(r.from, l.to-1); slot < r.to; slot++ {
			l.Observe(slotStart(slot), r.workers)
		}
	}
	if later.at >= l.at {
		l.at, l.seen = later.at, later.seen
	}
}

// slack is how much longer than Span a line may get before its oldest slots go, so that this is rare.
const slack = int64(24 * time.Hour / Slot)

// bound drops what is older than Span, and makes the older half coarser while the line takes too many bytes.
func (l *Line) bound() {
	if l.to-l.first > spanSlots+slack {
		l.rebuild(since(slices.Collect(l.runs()), l.to-spanSlots))
	}
	if len(l.closed) <= mostLine {
		return
	}
	runs := slices.Collect(l.runs())
	l.rebuild(coarser(runs, runs[len(runs)/2].from))
	for len(l.closed) > mostLine*7/8 { // numbers that differ very much in every hour
		l.rebuild(since(slices.Collect(l.runs()), l.first+(l.to-l.first)/8))
	}
}

// since returns the runs from a slot on.
func since(runs []run, from int64) []run {
	var kept []run
	for _, r := range runs {
		if r.to > from {
			r.from = max(r.from, from)
			kept = append(kept, r)
		}
	}
	return kept
}

// coarser returns runs of which those before a slot have one number per hour: the most workers that were known in it.
func coarser(runs []run, before int64) []run {
	before -= before % hour
	var joined []run
	for _, r := range runs {
		for at := r.from; at < r.to; {
			end := r.to
			if at < before {
				end = min(r.to, at-at%hour+hour)
				if whole := (r.to - at) / hour * hour; at%hour == 0 && whole > 0 {
					end = min(at+whole, before)
				}
			}
			last := len(joined) - 1
			if at < before && last >= 0 && at%hour != 0 { // the hour has begun with another number
				joined[last].to = end
				joined[last].workers = max(joined[last].workers, r.workers)
			} else {
				joined = append(joined, run{at, end, r.workers})
			}
			at = end
		}
	}
	return joined
}
