package forecast

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// monday is a Monday at midnight.
var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// afterMinutes is a moment after monday.
func afterMinutes(n float64) time.Time { return monday.Add(time.Duration(n * float64(time.Minute))) }

func TestASlotKeepsTheMostWorkersThatWereNeededInIt(t *testing.T) {
	for _, test := range []struct {
		name string
		// observed are minutes and workers.
		observed [][2]float64
		want     []int32
	}{
		{"a peak between two lower numbers", [][2]float64{{0, 1}, {1, 7}, {2, 2}}, []int32{7}},
		{"what was needed last holds at the beginning of the next slot", [][2]float64{{4, 3}, {5.5, 0}, {10.1, 0}},
			[]int32{3, 3, 0}},
		{"a decision that stands leaves no gap", [][2]float64{{1, 2}, {10.9, 2}}, []int32{2, 2, 2}},
		{"nobody has looked for longer than a number holds", [][2]float64{{1, 2}, {21, 4}}, []int32{2, -1, -1, -1, 4}},
		{"a peak after equal slots", [][2]float64{{0, 1}, {5, 1}, {10, 1}, {11, 4}}, []int32{1, 1, 4}},
		{"a peak that makes two slots equal", [][2]float64{{0, 4}, {1, 0}, {6, 1}, {7, 4}, {10, 1}}, []int32{4, 4, 4}},
		{"an earlier moment", [][2]float64{{6, 1}, {5, 9}, {1, 9}}, []int32{1}},
		{"a negative number", [][2]float64{{0, -5}}, []int32{0}},
	} {
		var l Line
		for _, o := range test.observed {
			l.Observe(afterMinutes(o[0]), int(o[1]))
		}
		if diff := cmp.Diff(test.want, l.Series().workers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// drawn is a line of random demand, and the most workers of each slot.
func drawn(seed uint64, slots int) (*Line, []int32) {
	random := rand.New(rand.NewPCG(seed, 1))
	l, want := &Line{}, make([]int32, slots)
	before := int32(0)
	for i := range want {
		want[i] = before
		for range 1 + random.IntN(3) {
			if random.IntN(4) > 0 {
				continue
			}
			before = int32(random.IntN(60))
			want[i] = max(want[i], before)
		}
		l.Observe(afterMinutes(float64(5*i)), int(want[i]))
		l.Observe(afterMinutes(float64(5*i)+4), int(before))
	}
	return l, want
}

func TestARestlessLineStaysSmallAndExactInItsNewerPart(t *testing.T) {
	const days = 60
	l, want := drawn(3, days*288)
	series := l.Series()
	if series.Len() != int(spanSlots) || slices.Contains(series.workers, unknown) {
		t.Fatalf("%d slots, want %d that are all known", series.Len(), spanSlots)
	}
	if size := len(l.closed); size > mostLine {
		t.Errorf("it takes %d bytes, want at most %d", size, mostLine)
	}
	want = want[len(want)-series.Len():]
	exact := 0
	for i, w := range series.workers {
		hour := want[i-i%12 : min(i-i%12+12, len(want))] // 60 days end at midnight
		most := int32(0)
		for _, n := range hour {
			most = max(most, n)
		}
		if w < want[i] || w > most {
			t.Fatalf("slot %d has %d, want %d, or at most the %d of its hour", i, w, want[i], most)
		}
		if w == want[i] {
			exact++
		} else if i > series.Len()-288 {
			t.Fatalf("slot %d of the last day has %d, want %d", i, w, want[i])
		}
	}
	if exact == series.Len() {
		t.Error("no slot is coarser: the line is not restless enough for this test")
	}
}

func TestALineOfHugeNumbersStaysBounded(t *testing.T) {
	var l Line
	random := rand.New(rand.NewPCG(7, 7))
	for i := range int(spanSlots) {
		l.Observe(afterMinutes(float64(5*i)), random.IntN(2*MostWorkers))
		if len(l.closed) > mostLine {
			t.Fatalf("after %d slots it takes %d bytes, want at most %d", i, len(l.closed), mostLine)
		}
	}
	if got := l.Series(); got.Len() < 2*288 {
		t.Errorf("it keeps %d slots, want at least two days", got.Len())
	}
}

func TestAHistoryComesBackFromItsBytes(t *testing.T) {
	h := &History{lines: map[string]*Line{}}
	h.lines["gpu"], _ = drawn(1, 3000)
	h.lines["cpu"], _ = drawn(2, 40)
	h.Observe(afterMinutes(5*3000), map[string]int{"new": 2})
	h.Observe(afterMinutes(5*3000+60), map[string]int{"new": 3})
	back, err := Decode(h.Encode())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gpu", "cpu", "new"} {
		if diff := cmp.Diff(h.Series(name), back.Series(name), cmp.AllowUnexported(Series{})); diff != "" {
			t.Errorf("group %s (-want +got):\n%s", name, diff)
		}
	}
	// It goes on where it ended: a restart of a few minutes is no gap, a longer one is.
	last := h.Series("new").Len()
	back.Observe(afterMinutes(5*3000+68), map[string]int{"new": 1})
	back.Observe(afterMinutes(5*3000+98), map[string]int{"new": 1})
	want := append(h.Series("new").workers, 3, -1, -1, -1, -1, -1, 1)
	if diff := cmp.Diff(want, back.Series("new").workers); diff != "" {
		t.Errorf("after %d slots and two restarts (-want +got):\n%s", last, diff)
	}
}

func TestAHistoryFollowsAnother(t *testing.T) {
	var stored, later, whole History
	see := func(h *History, minute float64, workers int) {
		h.Observe(afterMinutes(minute), map[string]int{"gpu": workers})
	}
	for _, h := range []*History{&stored, &whole} {
		see(h, 0, 1)
		see(h, 6, 2)
	}
	back, err := Decode(stored.Encode())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []*History{&later, &whole} {
		see(h, 31, 3)
		see(h, 33, 7)
		see(h, 36, 4)
		h.Observe(afterMinutes(36), map[string]int{"new": 9})
	}
	back.Follow(&later)
	for _, h := range []*History{back, &whole} {
		see(h, 44, 0)
		see(h, 46, 0)
	}
	for _, name := range []string{"gpu", "new"} {
		if diff := cmp.Diff(whole.Series(name).workers, back.Series(name).workers); diff != "" {
			t.Errorf("group %s (-want +got):\n%s", name, diff)
		}
	}
	if want := []int32{1, 2, -1, -1, -1, -1, 7, 7, 4, 0}; !cmp.Equal(back.Series("gpu").workers, want) {
		t.Errorf("it has %v, want %v", back.Series("gpu").workers, want)
	}
}

func TestAHistoryStaysWithinItsBytes(t *testing.T) {
	h := &History{lines: map[string]*Line{}}
	l, _ := drawn(1, 5000)
	for i := range 400 {
		h.lines[fmt.Sprintf("group-%03d", i)] = l
	}
	encoded := h.Encode()
	if len(encoded) > mostEncoded {
		t.Fatalf("%d bytes, want at most %d", len(encoded), mostEncoded)
	}
	back, err := Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if len(back.lines) < 100 || back.lines["group-000"] == nil || back.lines["group-399"] != nil {
		t.Errorf("%d groups are left, want the first ones by name", len(back.lines))
	}
}

func TestGroupsThatAreGoneForLongAreForgotten(t *testing.T) {
	var h History
	h.Observe(monday, map[string]int{"old": 1, "gpu": 1})
	h.Observe(monday.Add(Span/2), map[string]int{"gpu": 1})
	if h.Series("old").Len() != 1 {
		t.Error("half of the span later, the group is forgotten")
	}
	h.Observe(monday.Add(Span+time.Hour), map[string]int{"gpu": 1})
	if h.Series("old").Len() != 0 || h.Series("gpu").Len() == 0 {
		t.Error("a span later, want only the group that is seen")
	}
}

func TestNonsenseIsRejectedWithItsPlace(t *testing.T) {
	// group is an encoded group of one letter with some runs.
	group := func(first byte, runs ...byte) []byte {
		return append([]byte{version, 1, 'g', first, byte(len(runs))}, runs...)
	}
	for _, test := range []struct {
		name, want string
		encoded    []byte
	}{
		{"nothing", "it is empty", nil},
		{"another version", "its version is 9, want 1", []byte{9, 1, 'g'}},
		{"text", "its version is 123, want 1", []byte(`{"gpu": 1}`)},
		{"an empty name", `the name of a group is "", want text`, []byte{version, 0}},
		{"a name that is cut off", "the length of a group's name is 5, and only 1 bytes follow", []byte{version, 5, 'g'}},
		{"no slot", "group g: the first slot is cut off", []byte{version, 1, 'g'}},
		{"no runs", "group g: it has no runs", group(0)},
		{"a run without a number", "group g: the number of workers of a run is cut off", group(0, 3)},
		{"an empty run", "group g: a run is 0 slots long", group(0, 0, 2)},
		{"a run that is too long", "group g: the length of a run is 16383, want at most 8352", group(0, 0xff, 0x7f, 2)},
		{"runs that are too long", "it is 12766 slots long", group(0, 0xef, 0x31, 2, 0xef, 0x31, 2)},
		{"fewer than no workers", "group g: a run has -2 workers, want -1 to 1000000", group(0, 1, 3)},
		{"the same group twice", "group g comes after group g",
			append(group(0, 1, 2), group(0, 1, 2)[1:]...)},
	} {
		_, err := Decode(test.encoded)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, want %q in it", test.name, err, test.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	l, _ := drawn(1, 400)
	other, _ := drawn(2, 20)
	f.Add((&History{lines: map[string]*Line{"gpu": l, "cpu": other}}).Encode())
	f.Add([]byte{version})
	f.Add([]byte{version, 1, 'g', 0, 2, 3, 4})
	f.Add([]byte{version, 1, 'g', 5, 4, 3, 1, 2, 8})
	f.Fuzz(func(t *testing.T, encoded []byte) {
		h, err := Decode(encoded)
		if err != nil {
			return
		}
		again := h.Encode()
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("what was encoded cannot be read: %v", err)
		}
		if !bytes.Equal(again, back.Encode()) {
			t.Fatal("the bytes differ after another round")
		}
		for name, l := range h.lines {
			for _, n := range l.Series().workers {
				if n < unknown || n > MostWorkers {
					t.Fatalf("group %s needs %d workers", name, n)
				}
			}
			l.Observe(slotStart(l.to).Add(time.Minute), 3)
			if len(l.closed) > mostLine {
				t.Fatalf("group %s takes %d bytes", name, len(l.closed))
			}
		}
	})
}
