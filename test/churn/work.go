package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

// The worker groups.
const (
	cpuGroup = "cpu"
	gpuGroup = "gpu"
)

// most bounds what is asked for at once, in workers of each group: less than the groups' maxima, which are not what is
// tested here.
const most = 3

// work is random work on one RayCluster, and the record of what was asked for.
type work struct {
	driver    *rig.Driver
	heliostat *rig.Heliostat
	random    *rand.Rand
	count     map[string]int
	held      []held
	asked     map[string]ask
	requests  []request
	// begun and released count pieces of work.
	begun, released atomic.Int64
}

// held is work that is to be released at a time.
type held struct {
	id    string
	until time.Time
	actor bool
}

// ask is what the items of one id need.
type ask struct {
	group    string
	size     int
	items    int
	released time.Time
}

func newWork(driver *rig.Driver, heliostat *rig.Heliostat, seed uint64) *work {
	return &work{
		driver:    driver,
		heliostat: heliostat,
		random:    rand.New(rand.NewPCG(seed, 0)),
		count:     map[string]int{},
		asked:     map[string]ask{},
	}
}

// churn asks and releases at random for a time, then releases everything. Quiet spells let workers fall idle.
func (w *work) churn(ctx context.Context, duration time.Duration) error {
	end := time.Now().Add(duration)
	for time.Now().Before(end) {
		if err := w.step(ctx); err != nil {
			return err
		}
		pause := time.Duration(w.random.Int64N(int64(1500 * time.Millisecond)))
		if w.random.IntN(25) == 0 {
			pause = (idleSeconds + 4) * time.Second
		}
		if err := w.wait(ctx, pause); err != nil {
			return err
		}
	}
	if err := w.request(ctx, 0); err != nil {
		return err
	}
	for _, h := range w.held {
		if err := w.release(ctx, h); err != nil {
			return err
		}
	}
	w.held = nil
	return w.settled(ctx)
}

// wait passes time, releasing what is due.
func (w *work) wait(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		rest := w.held[:0]
		for _, h := range w.held {
			if time.Now().Before(h.until) {
				rest = append(rest, h)
			} else if err := w.release(ctx, h); err != nil {
				return err
			}
		}
		w.held = rest
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(left, 200*time.Millisecond)):
		}
	}
}

// step asks for one random thing, unless enough is asked for.
func (w *work) step(ctx context.Context) error {
	group, size := gpuGroup, []int{1, 2, 4}[w.random.IntN(3)]
	if w.random.IntN(3) == 0 {
		group, size = cpuGroup, []int{2, 4}[w.random.IntN(2)]
	}
	if w.load(group)+size > most*units {
		return nil
	}
	switch w.random.IntN(10) {
	case 0, 1, 2:
		return w.hold("actor", group, size, 1)
	case 3, 4:
		items := 2 + w.random.IntN(2)
		if w.load(group)+items*size > most*units {
			return nil
		}
		return w.hold("group", group, size, items)
	case 5:
		return w.request(ctx, 1+w.random.IntN(2))
	default:
		return w.hold("task", group, size, 1)
	}
}

// load is what is asked for and not over in a group, in units.
func (w *work) load(group string) int {
	sum := 0
	for _, a := range w.asked {
		if a.group == group && a.released.IsZero() {
			sum += a.size * a.items
		}
	}
	return sum
}

// hold asks for a task, an actor or a placement group and keeps it for a random time.
func (w *work) hold(do, group string, size, items int) error {
	w.count[do]++
	c := rig.Command{Do: do, ID: fmt.Sprintf("%s-%d", do, w.count[do])}
	resource, amount := amountOf(group, size)
	switch {
	case do == "group":
		for range items {
			c.Bundles = append(c.Bundles, map[string]float64{resource: amount})
		}
	case group == gpuGroup:
		c.GPUs = amount
	default:
		c.CPUs = amount
	}
	w.asked[c.ID] = ask{group: group, size: size, items: items}
	seconds := time.Duration(2+w.random.IntN(20)) * time.Second
	w.begun.Add(1)
	w.held = append(w.held, held{id: c.ID, until: time.Now().Add(seconds), actor: do == "actor"})
	return w.driver.Do(c)
}

// amountOf returns what Ray calls a size of a group.
func amountOf(group string, size int) (string, float64) {
	if group == gpuGroup {
		return "GPU", float64(size) / units
	}
	return "CPU", 2 * float64(size) / units
}

// release ends a piece of work once it runs: work that never ran was not served, and could not have been lost. It first
// calls an actor, so that an actor that died unnoticed counts as lost.
func (w *work) release(ctx context.Context, h held) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	a := w.asked[h.id]
	event := "running"
	if a.items > 1 {
		event = "placed"
	}
	// A loss is counted at the end, not here.
	if _, err := w.driver.Wait(ctx, h.id, event); ctx.Err() != nil {
		return fmt.Errorf("%w; %+v was asked for; Heliostat sees %s", err, a, w.seen())
	}
	if h.actor {
		if err := w.driver.Do(rig.Command{Do: "ask", ID: h.id}); err != nil {
			return err
		}
		if _, err := w.driver.Wait(ctx, h.id, "answered"); ctx.Err() != nil {
			return err
		}
	}
	a.released = time.Now()
	w.asked[h.id] = a
	w.released.Add(1)
	return w.driver.Do(rig.Command{Do: "release", ID: h.id})
}

// seen returns what Heliostat sees of the RayCluster, to explain why work does not run.
func (w *work) seen() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	path := "/v1/namespaces/" + namespace + "/rayclusters/" + name + "/snapshot"
	_, body, err := w.heliostat.Call(ctx, http.MethodGet, path, "")
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// settled waits until Ray has confirmed the end of everything.
func (w *work) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for id := range w.asked {
		// What was lost before has no such event; it is counted at the end.
		if _, err := w.driver.Wait(ctx, id, "released"); ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// request asks over REST for whole workers of the GPU group, replacing what was asked before; none clears it.
func (w *work) request(ctx context.Context, workers int) error {
	method, body := http.MethodDelete, ""
	if workers > 0 {
		w.count["request"]++
		method, body = http.MethodPost, `{"bundles": [{"GPU": 1}]}`
		if workers == 2 {
			body = `{"bundles": [{"GPU": 1}, {"GPU": 1}]}`
		}
	}
	now := time.Now()
	status, answer, err := w.heliostat.Call(ctx, method, rig.RequestPath(namespace, name), body)
	if err == nil && status >= http.StatusMultipleChoices {
		err = fmt.Errorf("requesting %d workers: status %d: %s", workers, status, answer)
	}
	if err != nil {
		return err
	}
	if n := len(w.requests); n > 0 {
		w.requests[n-1].ended = time.Now()
	}
	if workers > 0 {
		w.requests = append(w.requests, request{group: gpuGroup, workers: workers, asked: now})
	}
	return nil
}
