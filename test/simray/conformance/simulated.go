package conformance

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/simray"
)

// Simulated is a Target for simray.
type Simulated struct {
	Head *simray.Head
	Ray  simray.Version
}

// Addr implements Target.
func (s Simulated) Addr() string { return s.Head.Addr() }

// Version implements Target.
func (s Simulated) Version() simray.Version { return s.Ray }

// Patience implements Target. A simulated head waits only for the next millisecond of the clock.
func (s Simulated) Patience() time.Duration { return 5 * time.Second }

// Notice implements Target.
func (s Simulated) Notice() time.Duration { return 50 * time.Millisecond }

// Start implements Target.
func (s Simulated) Start(_ *testing.T, worker simray.Node) { s.Head.AddNode(worker) }

// Restart implements Target.
func (s Simulated) Restart(t *testing.T) {
	t.Helper()
	if err := s.Head.Restart(); err != nil {
		t.Fatal(err)
	}
}

// Do implements Target. All work is that of one driver, which stays connected.
func (s Simulated) Do(t *testing.T, work Work) (stop func()) {
	t.Helper()
	if !s.Head.Connected() {
		s.Head.Connect("", "python driver.py")
	}
	var ids []simray.WorkID
	for _, task := range work.Tasks {
		for range task.Count {
			ids = append(ids, s.Head.Submit(simray.Task{
				Bundle: bundle(t, task.Resources), Selectors: selectors(t, task.Selectors), Actor: task.Actor,
				Runs: time.Duration(task.Seconds * float64(time.Second)),
			}))
		}
	}
	for _, gang := range work.Gangs {
		g := simray.Gang{Strategy: raydemand.Strategy(gang.Strategy), TopologyLabel: gang.Topology,
			Selectors: selectors(t, gang.Selectors)}
		for _, b := range gang.Bundles {
			g.Bundles = append(g.Bundles, bundle(t, b))
		}
		ids = append(ids, s.Head.SubmitGang(g))
	}
	return func() {
		for _, id := range ids {
			s.Head.Cancel(id)
		}
	}
}

// RequestResources implements Target.
func (s Simulated) RequestResources(t *testing.T, bundles []map[string]float64, labels []map[string]string) {
	t.Helper()
	var entries []raydemand.Request
	for i, b := range bundles {
		entry := raydemand.Request{Bundle: bundle(t, b), Count: 1}
		if i < len(labels) && len(labels[i]) > 0 {
			entry.Selectors = selectors(t, labels[i:i+1])
		}
		entries = append(entries, entry)
	}
	s.Head.RequestResources(entries)
}

func bundle(t *testing.T, resources map[string]float64) raydemand.Bundle {
	t.Helper()
	b := raydemand.Bundle{}
	for name, value := range resources {
		amount, err := raydemand.FromFloat(value)
		if err != nil {
			t.Fatal(err)
		}
		b[name] = amount
	}
	return b
}

func selectors(t *testing.T, expressions []map[string]string) []raydemand.Selector {
	t.Helper()
	var all []raydemand.Selector
	for _, e := range expressions {
		s, err := raydemand.ParseSelector(e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}
