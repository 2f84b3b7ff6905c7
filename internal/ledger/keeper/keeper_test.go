package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool"
)

var (
	start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	llm   = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
)

// memory is a Store that can fail.
type memory struct {
	texts map[nodepool.ClusterKey][]byte
	err   error
	room  int
	loads int
}

func (m *memory) Load(context.Context) (map[nodepool.ClusterKey][]byte, error) {
	m.loads++
	return maps.Clone(m.texts), m.err
}

func (m *memory) Save(_ context.Context, texts map[nodepool.ClusterKey][]byte) error {
	if m.err != nil {
		return m.err
	}
	for key, text := range texts {
		if len(text) == 0 {
			delete(m.texts, key)
			continue
		}
		m.texts[key] = text
	}
	return nil
}

func (m *memory) Room(nodepool.ClusterKey) int { return m.room }

// process is one process with a ledger and a keeper.
type process struct {
	*Keeper
	now time.Time
	log bytes.Buffer
}

func newProcess(at time.Time, store Store) *process {
	p := &process{now: at}
	p.Keeper = New(Config{Ledger: ledger.New(at, ledger.Limits{}), Store: store, Mine: func(nodepool.ClusterKey) bool { return true },
		Now: func() time.Time { return p.now }, Log: slog.New(slog.NewTextHandler(&p.log, nil))})
	return p
}

// see shows the ledger a pod that was created at the start and is used.
func (p *process) see(at time.Time, key nodepool.ClusterKey) bool {
	p.now = at
	pod := ledger.Pod{Account: ledger.Account{Group: "gpu", Owner: "o", Cause: ledger.Used}, Part: 1, Created: start, Bound: start}
	return p.Ledger.Observe(ledger.Observation{At: at, Cluster: key, Pods: []ledger.Pod{pod}})
}

func (p *process) spent(cause ledger.Cause) (seconds float64) {
	for _, r := range p.Ledger.Rows(start, p.now) {
		if r.Cause == cause {
			seconds += r.PodSeconds
		}
	}
	return seconds
}

func TestALedgerContinuesInTheNextProcess(t *testing.T) {
	ctx := context.Background()
	store := &memory{texts: map[nodepool.ClusterKey][]byte{}, room: 1 << 20}
	first := newProcess(start, store)
	if first.see(start, llm) {
		t.Fatal("an observation counts before it is known what was saved")
	}
	first.Restore(ctx)
	first.see(start, llm)
	first.see(start.Add(time.Minute), llm)
	first.Save(ctx)

	second := newProcess(start.Add(10*time.Minute), store)
	second.see(start.Add(10*time.Minute), llm)
	second.Restore(ctx)
	second.see(start.Add(11*time.Minute), llm)
	second.see(start.Add(13*time.Minute), llm)
	if used, unobserved := second.spent(ledger.Used), second.spent(ledger.Unobserved); math.Abs(used-180) > 1 || math.Abs(unobserved-600) > 1 {
		t.Errorf("used for %v s, unobserved for %v s", used, unobserved)
	}
	if !second.Ledger.Began().Equal(start) {
		t.Errorf("it began at %v", second.Ledger.Began())
	}
	if store.loads != 2 {
		t.Errorf("the store was read %d times", store.loads)
	}
	second.see(start.Add(14*time.Minute), nodepool.ClusterKey{Namespace: "ml", Name: "new"})
	second.Restore(ctx)
	if store.loads != 2 {
		t.Error("the store is read for a RayCluster of which nobody else can have saved anything")
	}
}

func TestASharedStoreIsNotReadForEachNewRayCluster(t *testing.T) {
	ctx := context.Background()
	store := &memory{texts: map[nodepool.ClusterKey][]byte{}, room: 1 << 20}
	for second, loads := range map[int]int{1: 1, 4: 1, 6: 2} {
		p := newProcess(start, store)
		store.loads = 0
		p.Shared = true
		p.see(start, llm)
		p.Restore(ctx)
		other := nodepool.ClusterKey{Namespace: "ml", Name: "etl"}
		p.see(start.Add(time.Duration(second)*time.Second), other)
		p.Restore(ctx)
		if counts := p.see(p.now.Add(time.Second), other); store.loads != loads || counts != (loads == 2) {
			t.Errorf("%d s later the store was read %d times, want %d; the RayCluster counts: %v", second, store.loads, loads, counts)
		}
	}
}

func TestWithoutTheRightTheLedgerBeginsAnewAndItIsLoggedOnce(t *testing.T) {
	ctx := context.Background()
	p := newProcess(start, &memory{err: fmt.Errorf("reading: %w", nodepool.ErrDenied)})
	p.see(start, llm)
	p.Restore(ctx)
	if !p.see(start.Add(time.Second), llm) {
		t.Error("nothing counts without the right to keep it")
	}
	p.Save(ctx)
	p.Save(ctx)
	if n := strings.Count(p.log.String(), "not kept over restarts"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, p.log.String())
	}
}

func TestAStoreThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	ctx := context.Background()
	store := &memory{texts: map[nodepool.ClusterKey][]byte{}, room: 1 << 20, err: errors.New("timeout")}
	p := newProcess(start, store)
	p.see(start, llm)
	p.Restore(ctx)
	p.Restore(ctx)
	if p.see(start, llm) || strings.Count(p.log.String(), "cannot be kept now") != 1 {
		t.Errorf("it counts, or was not logged once: %s", p.log.String())
	}
	store.err = nil
	p.Restore(ctx)
	if !p.see(start, llm) {
		t.Error("it does not count although the store answers")
	}
	p.see(start.Add(time.Minute), llm)
	store.err = errors.New("timeout")
	p.Save(ctx)
	store.err = nil
	p.Save(ctx)
	if len(store.texts) != 1 {
		t.Error("what could not be saved is not saved later")
	}
}

func TestTextsTakeNoMoreRoomThanThereIs(t *testing.T) {
	ctx := context.Background()
	store := &memory{texts: map[nodepool.ClusterKey][]byte{}, room: 300}
	p := newProcess(start, store)
	p.see(start, llm)
	p.Restore(ctx)
	for m := range 40 * 60 {
		p.see(start.Add(time.Duration(m)*time.Minute), llm)
	}
	p.Save(ctx)
	if n := len(store.texts[llm]); n == 0 || n > 300 {
		t.Errorf("%d bytes", n)
	}
	saved, err := decode(store.texts[llm])
	if err != nil {
		t.Fatal(err)
	}
	var pods float64
	for _, b := range saved.Lines[0].Buckets {
		pods += b[2]
	}
	if want := (40*60.0 - 1) * 60; math.Abs(pods-want) > 10 {
		t.Errorf("%v pod-seconds are saved, want %v", pods, want)
	}
}

func TestWhatIsTooOldOrUnreadableIsRemoved(t *testing.T) {
	ctx := context.Background()
	old := newProcess(start.Add(-40*24*time.Hour), &memory{texts: map[nodepool.ClusterKey][]byte{}, room: 1 << 20})
	old.see(old.now, llm)
	old.Restore(ctx)
	old.see(old.now, llm)
	old.see(old.now.Add(time.Minute), llm)
	old.Save(ctx)
	store := old.Store.(*memory)
	broken := nodepool.ClusterKey{Namespace: "ml", Name: "broken"}
	store.texts[broken] = []byte("hello")
	p := newProcess(start, store)
	p.see(start, broken)
	p.Restore(ctx)
	if !p.see(start, broken) || !strings.Contains(p.log.String(), "cluster=ml/broken") {
		t.Errorf("it does not count, or nothing was logged: %s", p.log.String())
	}
	p.see(start.Add(time.Minute), broken)
	p.Save(ctx)
	if got := slices.Collect(maps.Keys(store.texts)); !slices.Equal(got, []nodepool.ClusterKey{broken}) {
		t.Errorf("the store has %v", got)
	}
	if _, err := decode(store.texts[broken]); err != nil {
		t.Error(err)
	}
}

// record is what is kept beside a ledger.
type record struct {
	of        map[nodepool.ClusterKey]string
	forgotten []nodepool.ClusterKey
}

func (r *record) Save(key nodepool.ClusterKey, _ time.Time, coarse bool) json.RawMessage {
	if text := r.of[key]; coarse && text != "" {
		return json.RawMessage(`"coarse"`)
	} else if text != "" {
		return json.RawMessage(text)
	}
	return nil
}

func (r *record) Restore(key nodepool.ClusterKey, saved json.RawMessage) error {
	if string(saved) == `"broken"` {
		return errors.New("it is broken")
	}
	r.of[key] = string(saved)
	return nil
}

func (r *record) Forget(key nodepool.ClusterKey) { r.forgotten = append(r.forgotten, key) }

func TestWhatIsBesideALedgerIsKeptWhileThereIsRoom(t *testing.T) {
	ctx := context.Background()
	digits := make([]byte, 1200)
	for i := range digits {
		digits[i] = byte('0' + i*i*7919%10)
	}
	long := `"` + string(digits) + fmt.Sprintf("%x", rand.New(rand.NewPCG(1, 2)).Perm(400)) + `"`
	for room, want := range map[int]string{1 << 20: long, 600: `"coarse"`, 10: ""} {
		store := &memory{texts: map[nodepool.ClusterKey][]byte{}, room: room}
		first, next := newProcess(start, store), newProcess(start.Add(10*time.Minute), store)
		first.Beside = &record{of: map[nodepool.ClusterKey]string{llm: long}}
		kept := &record{of: map[nodepool.ClusterKey]string{}}
		next.Beside = kept
		first.see(start, llm)
		first.Restore(ctx)
		first.see(start.Add(time.Minute), llm)
		first.Save(ctx)
		next.see(next.now, llm)
		next.Restore(ctx)
		if got := kept.of[llm]; got != want {
			t.Errorf("with room for %d bytes, %.20s is restored, want %.20s", room, got, want)
		}
		next.see(next.now.Add(time.Minute), llm)
		next.Ledger.Forget(llm, next.now)
		next.now = next.now.Add(40 * 24 * time.Hour)
		next.Save(ctx)
		if !slices.Equal(kept.forgotten, []nodepool.ClusterKey{llm}) {
			t.Errorf("forgotten is %v", kept.forgotten)
		}
	}
	store := &memory{texts: map[nodepool.ClusterKey][]byte{}, room: 1 << 20}
	first, next := newProcess(start, store), newProcess(start.Add(10*time.Minute), store)
	first.Beside, next.Beside = &record{of: map[nodepool.ClusterKey]string{llm: `"broken"`}}, &record{}
	first.see(start, llm)
	first.Restore(ctx)
	first.see(start.Add(time.Minute), llm)
	first.Save(ctx)
	next.see(next.now, llm)
	next.Restore(ctx)
	if !strings.Contains(next.log.String(), "cluster=ml/llm err=\"it is broken\"") || !next.see(next.now, llm) {
		t.Errorf("the ledger does not go on, or nothing was logged: %s", next.log.String())
	}
}

// TestARayClusterThatMovesIsContinuedByItsNextProcess has two processes that share the RayClusters.
func TestARayClusterThatMovesIsContinuedByItsNextProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	store := &memory{texts: map[nodepool.ClusterKey][]byte{}, room: 1 << 20}
	a, b := newProcess(start, store), newProcess(start, store)
	a.Shared, b.Shared = true, true
	a.see(start, llm)
	a.Restore(ctx)
	a.see(start, llm)
	a.see(start.Add(time.Minute), llm)
	a.HandOver(llm)
	ticks := make(chan time.Time)
	done := make(chan struct{})
	go func() { a.Run(ctx, ticks); close(done) }()
	ticks <- start
	ticks <- start // the first one is done
	cancel()
	<-done
	if rows := a.Ledger.Rows(start, a.now); len(rows) != 0 {
		t.Errorf("it still has %v", rows)
	}
	b.see(start.Add(61*time.Second), llm)
	b.Restore(context.Background())
	b.see(start.Add(62*time.Second), llm)
	b.see(start.Add(72*time.Second), llm)
	if used, unobserved := b.spent(ledger.Used), b.spent(ledger.Unobserved); math.Abs(used-70) > 0.1 || math.Abs(unobserved-2) > 0.1 {
		t.Errorf("used for %v s, unobserved for %v s", used, unobserved)
	}
}

// keptMinute returns a store in which an earlier process has saved that llm was used for a minute.
func keptMinute() *memory {
	store := &memory{texts: map[nodepool.ClusterKey][]byte{}, room: 1 << 20}
	p := newProcess(start, store)
	p.see(start, llm)
	p.Restore(context.Background())
	p.see(start, llm)
	p.see(start.Add(time.Minute), llm)
	p.Save(context.Background())
	return store
}

// tick runs one tick of a keeper, and then its end.
func (p *process) tick() {
	ctx, cancel := context.WithCancel(context.Background())
	ticks, done := make(chan time.Time), make(chan struct{})
	go func() { p.Run(ctx, ticks); close(done) }()
	ticks <- p.now
	cancel()
	<-done
}

func TestTheCostsOfARayClusterThatMovesOnBeforeTheyAreReadAreKept(t *testing.T) {
	store := keptMinute()
	want := string(store.texts[llm])
	q := newProcess(start.Add(2*time.Minute), store)
	q.Shared = true
	q.Mine = func(nodepool.ClusterKey) bool { return false }
	q.see(q.now, llm)
	q.HandOver(llm)
	q.tick()
	if got := string(store.texts[llm]); got != want {
		t.Error("what an earlier process saved was written over")
	}
	if waiting := q.Ledger.Waiting(); len(waiting) != 0 {
		t.Errorf("%v still waits", waiting)
	}
}

func TestCostsDoNotBeginAnewWhileTheRightToWriteHasLapsed(t *testing.T) {
	for name, laterText := range map[string]bool{"the store has it": true, "nobody has saved it": false} {
		store := keptMinute()
		if !laterText {
			clear(store.texts)
		}
		q := newProcess(start.Add(2*time.Minute), store)
		q.Shared = true
		may := false
		q.Mine = func(nodepool.ClusterKey) bool { return may }
		q.see(q.now, llm)
		q.Restore(context.Background())
		q.now = q.now.Add(every)
		q.Save(context.Background())
		if q.see(q.now, llm) || (len(store.texts) == 1) != laterText {
			t.Errorf("%s: it counts, or was saved, before its costs are restored", name)
		}
		may = true
		q.Restore(context.Background())
		if !q.see(q.now, llm) {
			t.Errorf("%s: it does not count", name)
		}
		q.see(q.now.Add(time.Minute), llm)
		used, unobserved := q.spent(ledger.Used), q.spent(ledger.Unobserved)
		if laterText && (math.Abs(used-120) > 0.1 || math.Abs(unobserved-360) > 0.1) {
			t.Errorf("%s: used for %v s, unobserved for %v s", name, used, unobserved)
		}
	}
}

// TestWhatIsRestoredAndMovesOnIsNeitherSavedNorCounted has a process that reads the costs of two RayClusters, of which
// another process takes one before the first cycle.
func TestWhatIsRestoredAndMovesOnIsNeitherSavedNorCounted(t *testing.T) {
	store := keptMinute()
	etl := nodepool.ClusterKey{Namespace: "ml", Name: "etl"}
	q := newProcess(start.Add(2*time.Minute), store)
	q.Shared = true
	beside := &record{of: map[nodepool.ClusterKey]string{}}
	q.Beside = beside
	q.see(q.now, etl)
	q.Restore(context.Background())
	if q.spent(ledger.Used) != 60 {
		t.Fatal("what this process decides about is not restored with the first reading")
	}
	store.texts[llm] = []byte("of another process")
	q.Mine = func(key nodepool.ClusterKey) bool { return key == etl }
	q.now = q.now.Add(every)
	q.tick()
	if got := string(store.texts[llm]); got != "of another process" {
		t.Errorf("what another process saved was replaced by %q", got)
	}
	if q.spent(ledger.Used) != 0 || !slices.Equal(beside.forgotten, []nodepool.ClusterKey{llm}) {
		t.Errorf("it counts although another process adds it up; forgotten are %v", beside.forgotten)
	}
}

func TestWhatAnotherProcessSavedIsNotRemovedBecauseItCannotBeRead(t *testing.T) {
	store := keptMinute()
	etl := nodepool.ClusterKey{Namespace: "ml", Name: "etl"}
	store.texts[llm] = []byte("of a newer version")
	q := newProcess(start.Add(2*time.Minute), store)
	q.Shared = true
	q.Mine = func(key nodepool.ClusterKey) bool { return key == etl }
	q.see(q.now, etl)
	q.Restore(context.Background())
	q.see(q.now.Add(time.Minute), etl)
	q.Save(context.Background())
	if got := string(store.texts[llm]); got != "of a newer version" || store.texts[etl] == nil {
		t.Errorf("the store has %q and %d texts", got, len(store.texts))
	}
}

// TestWhatIsAddedUpInOtherReplacesItsTexts has 30 RayClusters that end, with room for ten.
func TestWhatIsAddedUpInOtherReplacesItsTexts(t *testing.T) {
	for _, shared := range []bool{false, true} {
		store := &memory{texts: map[nodepool.ClusterKey][]byte{}, room: 1 << 20}
		p := newProcess(start, store)
		p.Ledger, p.Shared = ledger.New(start, ledger.Limits{Clusters: 10}), shared
		for i := range 30 {
			key := nodepool.ClusterKey{Namespace: "ci", Name: fmt.Sprint("run-", i)}
			at := start.Add(time.Duration(i) * 10 * time.Second)
			p.see(at, key)
			p.Restore(context.Background())
			p.see(at, key)
			p.Ledger.Forget(key, at.Add(10*time.Second))
			p.Save(context.Background())
		}
		spent := p.spent(ledger.Used)
		other := nodepool.ClusterKey{Namespace: "ci", Name: ledger.Other}
		if _, saved := store.texts[other]; len(store.texts) > 10 || saved == shared {
			t.Errorf("shared: %v, the store has %d texts, of %v: %v", shared, len(store.texts), other, saved)
		}
		next := newProcess(p.now.Add(time.Minute), store)
		next.see(next.now, llm)
		next.Restore(context.Background())
		if got := next.spent(ledger.Used); !shared && math.Abs(got-spent) > 1 {
			t.Errorf("the next process has %v s, want %v", got, spent)
		}
	}
}

// crowded is a store in which the texts do not fit until they are smaller.
type crowded struct {
	memory
	fits  int
	wrote []int
}

func (c *crowded) Save(ctx context.Context, texts map[nodepool.ClusterKey][]byte) error {
	largest := 0
	for _, text := range texts {
		largest = max(largest, len(text))
	}
	c.wrote = append(c.wrote, len(texts))
	if largest > c.fits {
		c.room = c.fits
		return fmt.Errorf("writing: %w", nodepool.ErrFull)
	}
	return c.memory.Save(ctx, texts)
}

func TestAllTextsBecomeSmallerIfTheyDoNotFit(t *testing.T) {
	ctx := context.Background()
	store := &crowded{memory: memory{texts: map[nodepool.ClusterKey][]byte{}, room: 1 << 20}, fits: 1 << 20}
	p := newProcess(start, store)
	etl := nodepool.ClusterKey{Namespace: "ml", Name: "etl"}
	for _, key := range []nodepool.ClusterKey{llm, etl} {
		p.see(start, key)
		p.Restore(ctx)
		for m := range 40 * 60 {
			p.see(start.Add(time.Duration(m)*time.Minute), key)
		}
	}
	p.Ledger.Forget(etl, p.now)
	p.Save(ctx)
	for m := range 5 {
		p.see(start.Add(time.Duration(40*60+m)*time.Minute), llm)
	}
	store.fits = 300
	p.Save(ctx)
	p.Save(ctx)
	if !slices.Equal(store.wrote, []int{2, 1, 2}) || len(store.texts[llm]) > 300 || len(store.texts[etl]) > 300 {
		t.Errorf("wrote %v texts, at last of %d and %d bytes", store.wrote, len(store.texts[llm]), len(store.texts[etl]))
	}
}
