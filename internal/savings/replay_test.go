package savings_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/savings"
	"heliostat.dev/heliostat/pkg/nodepool"
)

var (
	begin = time.Date(2026, 3, 1, 10, 30, 0, 0, time.UTC)
	llm   = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
)

// task is work that takes a worker alone for some seconds from a second on, and holds a part of it.
type task struct {
	at, takes int
	holds     float64
}

// worker is a worker of the model.
type worker struct {
	name                    string
	created, ready, leaving int
	// busyUntil is when its task ends, idleSince since when it has none.
	busyUntil, idleSince int
	// holds is which part its task holds.
	holds float64
}

// settings are those of the modelled group. Workers start within start seconds, and need gone seconds to end.
type settings struct{ timeout, min, start, gone int }

// model is a worker group that is scaled as Heliostat scales: a worker for each task that none waits for, and idle ones
// leave after the timeout while more than the minimum are there. It is written without knowledge of a replay.
type model struct {
	settings
	workers []worker
	started int
	// waited is how long tasks waited together.
	waited float64
}

// second moves the model on by one second, and returns the tasks that still wait.
func (m *model) second(now int, waiting []task) []task {
	m.workers = slices.DeleteFunc(m.workers, func(w worker) bool { return w.leaving > 0 && now >= w.leaving+m.gone })
	for i := range m.workers {
		w := &m.workers[i]
		if w.busyUntil == now && w.ready < now {
			w.idleSince = now
		}
		if w.ready == now {
			w.idleSince = now
		}
	}
	for i := range m.workers { // the first idle one takes the first task
		w := &m.workers[i]
		if len(waiting) > 0 && w.leaving == 0 && w.ready <= now && w.busyUntil <= now {
			m.waited += float64(now - waiting[0].at)
			w.busyUntil, w.holds, waiting = now+waiting[0].takes, waiting[0].holds, waiting[1:]
		}
	}
	coming, live := 0, 0
	for i := range m.workers {
		w := &m.workers[i]
		if w.leaving > 0 {
			continue
		}
		live++
		if w.ready > now {
			coming++
		}
	}
	for ; coming < len(waiting) || live < m.min; coming, live = coming+1, live+1 {
		m.started++
		m.workers = append(m.workers, worker{name: fmt.Sprintf("w-%05d", m.started), created: now, ready: now + m.start})
	}
	for i := range m.workers {
		w := &m.workers[i]
		if w.leaving == 0 && w.ready <= now && w.busyUntil <= now && now-w.idleSince >= m.timeout && live > m.min {
			w.leaving, live = now, live-1
		}
	}
	return waiting
}

// parts are the parts of all pods as a decision at a moment has them. hourly is the price of a worker by what its task
// holds.
func (m *model) parts(now int, hourly func(holds float64) float64) (parts []ledger.Pod) {
	for i := range m.workers {
		w := &m.workers[i]
		created := begin.Add(time.Duration(w.created) * time.Second)
		p := ledger.Pod{Pod: w.name, Account: ledger.Account{Group: "gpu", Owner: "RayCluster/llm"}, Part: 1, GPUs: 8, Hourly: hourly(0),
			Created: created, Bound: created}
		switch {
		case w.leaving > 0:
			p.Cause = ledger.Leaving
		case w.ready > now:
			p.Cause = ledger.Starting
		case w.busyUntil > now:
			rest := p
			p.Cause, p.Part, p.GPUs, p.Hourly = ledger.Used, w.holds, 8*w.holds, w.holds*hourly(w.holds)
			rest.Cause, rest.Why, rest.Part, rest.GPUs, rest.Hourly = ledger.Idle, "no_demand", 1-w.holds, 8*(1-w.holds), (1-w.holds)*hourly(w.holds)
			if rest.Part > 0 {
				parts = append(parts, rest)
			}
		case now-w.idleSince < m.timeout:
			p.Cause, p.Why = ledger.Idle, "idle_timeout"
		default:
			p.Cause, p.Why = ledger.Idle, "minimum"
		}
		parts = append(parts, p)
	}
	return parts
}

// result is what a run of the model cost by the ledger, and what was recorded of it.
type result struct {
	cost    ledger.Amount
	causes  map[ledger.Cause]ledger.Amount
	waited  float64
	started int
	record  savings.Record
}

// run runs the model over tasks in order of their time, and lets a ledger and a history look after each change, and every
// 30 seconds.
func run(tasks []task, s settings, span int) result {
	return runAt(func(float64) float64 { return 36 }, tasks, s, span)
}

func runAt(hourly func(holds float64) float64, tasks []task, s settings, span int) result {
	m := &model{settings: s}
	l, h := ledger.New(ledger.Limits{}), savings.New()
	l.Observe(ledger.Observation{At: begin, Cluster: llm})
	groups := []nodepool.WorkerGroup{{Name: "gpu", Min: s.min, Max: 1000, NumOfHosts: 1}}
	var waiting []task
	var last []ledger.Pod
	for now := 0; now <= span; now++ {
		for len(tasks) > 0 && tasks[0].at <= now {
			waiting, tasks = append(waiting, tasks[0]), tasks[1:]
		}
		waiting = m.second(now, waiting)
		at := begin.Add(time.Duration(now) * time.Second)
		parts := m.parts(now, hourly)
		if slices.Equal(parts, last) && now%30 != 0 && now != span {
			continue
		}
		last = parts
		l.Observe(ledger.Observation{At: at, Cluster: llm, Pods: parts})
		h.Observe(savings.Observation{At: at, Cluster: llm, Groups: groups, IdleTimeout: time.Duration(s.timeout) * time.Second, Pods: parts})
	}
	end := begin.Add(time.Duration(span) * time.Second)
	r := result{waited: m.waited, started: m.started, causes: map[ledger.Cause]ledger.Amount{}}
	for _, row := range l.Rows(end) {
		r.cost = r.cost.Plus(row.Amount)
		r.causes[row.Cause] = r.causes[row.Cause].Plus(row.Amount)
	}
	if records := h.Since(llm, begin); len(records) > 0 {
		r.record = records[0]
	}
	return r
}

func drawTasks(t *rapid.T, span int) (tasks []task) {
	for range rapid.IntRange(1, 8).Draw(t, "bursts") {
		at := rapid.IntRange(0, span*3/4).Draw(t, "at")
		for range rapid.IntRange(1, 12).Draw(t, "tasks") {
			tasks = append(tasks, task{at + rapid.IntRange(0, 2400).Draw(t, "later"), rapid.IntRange(5, 900).Draw(t, "takes"), 1})
		}
	}
	slices.SortFunc(tasks, func(a, b task) int { return a.at - b.at })
	return tasks
}

func drawSettings(t *rapid.T) settings {
	return settings{timeout: int(rapid.SampledFrom(savings.Timeouts[:]).Draw(t, "timeout").Seconds()),
		min: rapid.IntRange(0, 4).Draw(t, "min"), start: rapid.IntRange(10, 600).Draw(t, "start"), gone: rapid.IntRange(1, 40).Draw(t, "gone")}
}

// indexOf returns the index of a timeout in seconds.
func indexOf(seconds int) int {
	return slices.Index(savings.Timeouts[:], time.Duration(seconds)*time.Second)
}

// TestAReplayWithTheSettingsInForceIsWhatTheLedgerHas is what makes the other replays credible: with the timeout and the
// minimum that were in force, the replay costs what the ledger has added up, within 1 %, and waits no more.
func TestAReplayWithTheSettingsInForceIsWhatTheLedgerHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const span = 2 * 3600
		s := drawSettings(t)
		r := run(drawTasks(t, span), s, span)
		o := r.record.Replay(indexOf(s.timeout))
		for what, c := range map[string][2]float64{"pod-seconds": {o.Cost.PodSeconds(), r.cost.PodSeconds},
			"GPU-seconds": {o.Cost.GPUSeconds(), r.cost.GPUSeconds}, "money": {o.Cost.Money(), r.cost.Money}} {
			if math.Abs(c[0]-c[1]) > 0.01*c[1] {
				t.Fatalf("%s: the replay has %v, the ledger %v (%+v): %+v", what, c[0], c[1], s, r.record)
			}
		}
		if o.Starts != 0 {
			t.Fatalf("the replay has %v more starts (%+v)", o.Starts, s)
		}
	})
}

// TestAReplayWithAnotherTimeoutIsNearWhatThatTimeoutCosts runs the same tasks with two timeouts, and replays the first
// run with the second timeout. A replay gives work to the workers that got it, while a model with fewer workers gives it
// to others, so each history alone may differ; over many, the replay may be wrong by 5 % of what the group costs.
func TestAReplayWithAnotherTimeoutIsNearWhatThatTimeoutCosts(t *testing.T) {
	const span, histories = 2 * 3600, 12
	for _, pair := range [][2]int{{600, 60}, {300, 120}, {60, 300}, {120, 600}} {
		var replayed, real, before, wrong, waited, reallyWaited float64
		for seed := range histories {
			tasks := tasksOf(seed, span)
			s := settings{timeout: pair[0], min: seed % 3, start: 90, gone: 20}
			r := run(tasks, s, span)
			s.timeout = pair[1]
			other := run(tasks, s, span)
			o := r.record.Replay(indexOf(pair[1]))
			replayed, real, before = replayed+o.Cost.Money(), real+other.cost.Money, before+r.cost.Money
			wrong += math.Abs(o.Cost.Money() - other.cost.Money)
			waited, reallyWaited = waited+r.waited+o.Waited, reallyWaited+other.waited
		}
		t.Logf("%d s replayed with %d s: %.0f before, replayed %.0f, really %.0f (%.1f %% wrong in the mean); waiting %.0f, really %.0f",
			pair[0], pair[1], before, replayed, real, 100*wrong/real, waited, reallyWaited)
		if math.Abs(replayed-real) > 0.05*real || (replayed < before) != (real < before) {
			t.Errorf("%d s replayed with %d s: %.0f, really %.0f, %.0f before", pair[0], pair[1], replayed, real, before)
		}
	}
}

// tasksOf returns the tasks of a history, which look random and are the same for each seed.
func tasksOf(seed, span int) (tasks []task) {
	x := uint64(seed)*2654435761 + 12345
	next := func(n int) int {
		x = x*6364136223846793005 + 1442695040888963407
		return int(x>>33) % n
	}
	for range 3 + next(4) {
		at := next(span * 3 / 4)
		for range 1 + next(8) {
			tasks = append(tasks, task{at + next(2400), 20 + next(600), 1})
		}
	}
	slices.SortFunc(tasks, func(a, b task) int { return a.at - b.at })
	return tasks
}

// TestAReplayWithALowerMinimumIsNearWhatThatMinimumCosts does the same with minimums. A replay that
// promises too little is fair: each worker that got work counts as one that had to start.
func TestAReplayWithALowerMinimumIsNearWhatThatMinimumCosts(t *testing.T) {
	const span, histories = 2 * 3600, 12
	for level, by := range []int{1, 2, 4} {
		var replayed, real, before float64
		for seed := range histories {
			tasks := tasksOf(seed, span)
			s := settings{timeout: 120, min: 4, start: 90, gone: 20}
			r := run(tasks, s, span)
			s.min -= by
			other := run(tasks, s, span)
			replayed += r.record.ReplayMinimum(level).Cost.Money()
			real, before = real+other.cost.Money, before+r.cost.Money
		}
		t.Logf("minimum 4 lowered by %d: %.0f before, replayed %.0f, really %.0f", by, before, replayed, real)
		if replayed < real*0.98 || replayed > real*1.12 || replayed >= before {
			t.Errorf("minimum 4 lowered by %d: %.0f, really %.0f, %.0f before", by, replayed, real, before)
		}
	}
}

// TestAReplayWithSlicesIsWhatSlicesCost runs the same tasks, which hold parts of their workers, with workers that cost
// less unless a task needs more than the smaller worker has.
func TestAReplayWithSlicesIsWhatSlicesCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const span = 2 * 3600
		s, tasks := drawSettings(t), drawTasks(t, span)
		for i := range tasks {
			tasks[i].holds = rapid.SampledFrom([]float64{0.01, 0.125, 0.2, 0.25, 0.3, 0.5, 0.51, 1}).Draw(t, "holds")
		}
		eighths := rapid.SampledFrom([]int{4, 2, 1}).Draw(t, "eighths")
		price := rapid.Float64Range(0.1, 0.9).Draw(t, "price")
		share := float64(eighths) / 8
		r := run(tasks, s, span)
		want := runAt(func(holds float64) float64 {
			if holds > share {
				return 36
			}
			return 36 * price
		}, tasks, s, span).cost.Money
		o, fits := r.record.ReplaySize(eighths, price)
		if math.Abs(o.Cost.Money()-want) > 0.01*want && fits > 0 {
			t.Fatalf("the replay costs %v, the model %v (%+v, %d eighths at %v)", o.Cost.Money(), want, s, eighths, price)
		}
		if o.Cost.PodSeconds() != r.record.Observed.PodSeconds() || o.Starts != 0 {
			t.Fatalf("there are as many workers: %+v", o)
		}
	})
}
