package capacity_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	warm "heliostat.dev/heliostat/internal/addon/capacity"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// one is one CPU.
var one = raydemand.Bundle{raydemand.CPU: raydemand.One}

// restful is a RayCluster without work, with one idle worker.
func restful() *observe.View {
	v := &observe.View{Now: start}
	v.State.Session = "s"
	v.State.Nodes = []raydemand.Node{
		{Instance: "head", Head: true, Status: raydemand.Idle, Total: one, Available: one},
		{Instance: "w", Status: raydemand.Idle, Total: one, Available: one},
	}
	return v
}

func request() nodepool.OwnedRequest {
	r := nodepool.OwnedRequest{RenewedAt: start}
	r.ID, r.Owner = "r", "ann"
	return r
}

func TestWhatCountsAsWork(t *testing.T) {
	worker := func(status raydemand.NodeStatus, free raydemand.Bundle) func(*observe.View) {
		return func(v *observe.View) { v.State.Nodes[1].Status, v.State.Nodes[1].Available = status, free }
	}
	owned := func(change func(*nodepool.OwnedRequest)) func(*observe.View) {
		return func(v *observe.View) {
			r := request()
			change(&r)
			v.Cluster.Owned = []nodepool.OwnedRequest{r}
		}
	}
	requests := []raydemand.Request{{Bundle: one, Count: 1}}
	for name, c := range map[string]struct {
		change func(*observe.View)
		want   string
	}{
		"nothing":               {func(*observe.View) {}, ""},
		"a task that waits":     {func(v *observe.View) { v.State.Demand.Requests = requests }, "demand waits"},
		"a gang that waits":     {func(v *observe.View) { v.State.Demand.Gangs = []raydemand.Gang{{}} }, "demand waits"},
		"request_resources":     {func(v *observe.View) { v.State.Demand.Constraint = requests }, "request_resources holds capacity"},
		"a plain request":       {func(v *observe.View) { v.Cluster.RequestResources = requests }, "a request over REST holds capacity"},
		"a request":             {owned(func(*nodepool.OwnedRequest) {}), "request r of ann holds capacity"},
		"an expired one":        {owned(func(r *nodepool.OwnedRequest) { r.LeaseSeconds, r.RenewedAt = 10, start.Add(-time.Minute) }), ""},
		"one that goes":         {owned(func(r *nodepool.OwnedRequest) { r.Deleting = true }), ""},
		"a busy head":           {func(v *observe.View) { v.State.Nodes[0].Status = raydemand.Running }, "the head is in use"},
		"a busy worker":         {worker(raydemand.Running, nil), "worker w is in use"},
		"a worker that joins":   {worker(raydemand.Unspecified, one), "worker w is in use"},
		"a dead worker":         {worker(raydemand.Dead, nil), ""},
		"an empty one drains":   {worker(raydemand.Draining, one), ""},
		"one with work drains":  {worker(raydemand.Draining, nil), "worker w is in use"},
		"an idle one, reserved": {worker(raydemand.Idle, nil), ""},
	} {
		v := restful()
		if c.change(v); warm.Work(v) != c.want {
			t.Errorf("%s: %q, want %q", name, warm.Work(v), c.want)
		}
	}
}

func TestWhatPreventsAnEndForGood(t *testing.T) {
	for name, c := range map[string]struct {
		cluster nodepool.Cluster
		want    string
	}{
		"nothing":            {nodepool.Cluster{}, ""},
		"a RayJob":           {nodepool.Cluster{Owner: nodepool.Owner{Kind: "RayJob", Name: "train"}}, "RayJob train owns it"},
		"another controller": {nodepool.Cluster{OwnedBy: "AppWrapper a"}, "AppWrapper a owns it"},
		"Kueue":              {nodepool.Cluster{Queue: nodepool.Queue{Mark: "queue"}}, "Kueue queues it, and would start it again"},
		"unknown requests":   {nodepool.Cluster{OwnedUnknown: "forbidden"}, "the ResourceRequests are unknown: forbidden"},
	} {
		if got := warm.Prevented(&c.cluster); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// clock drives a Clock as the loop does, with a cycle every second.
type clock struct {
	warm.IdleClock
	*observe.View
	after time.Duration
	// doubt is why a reading proves nothing, err why a look fails, and found what it finds.
	doubt string
	err   error
	found raydemand.Occupants
	// announced and ended are since when the RayCluster has been announced and would end, after start.
	announced, ended time.Duration
}

func newClock(after time.Duration) *clock { return &clock{View: restful(), after: after} }

// run lets cycles pass until a time after start.
func (c *clock) run(until time.Duration) (last warm.IdleStep) {
	for ; c.Now.Before(start.Add(until)); c.Now = c.Now.Add(time.Second) {
		c.Observe(c.View, c.doubt)
		if last = c.Next(c.View, c.after, c.doubt); last.Do == warm.Look {
			c.Looked(c.Now, c.found, c.err)
			last = c.Next(c.View, c.after, c.doubt)
		}
		switch last.Do {
		case warm.Announce:
			c.announced = c.Now.Sub(start)
		case warm.End:
			c.ended = c.Now.Sub(start)
			return last
		}
	}
	return last
}

// check compares when the RayCluster was last announced, and when it ended.
func (c *clock) check(t *testing.T, announced, ended time.Duration) {
	t.Helper()
	if c.announced != announced || c.ended != ended {
		t.Errorf("announced after %v and ended after %v, want %v and %v", c.announced, c.ended, announced, ended)
	}
}

const (
	minutes  = time.Minute
	suspends = 20 * minutes
)

func TestAQuarterOfTheTimeIsTheWarningAndAQuarterOfAnHourAtMost(t *testing.T) {
	c := newClock(suspends)
	c.run(time.Hour)
	c.check(t, 15*minutes, 20*minutes)
	c = newClock(4 * time.Hour)
	c.run(5 * time.Hour)
	c.check(t, 225*minutes, 240*minutes)
}

func TestALateAnnouncementDelaysTheEnd(t *testing.T) {
	c := newClock(suspends)
	c.run(14 * minutes)
	c.doubt = "the head is slow"
	c.run(15*minutes + 30*time.Second)
	c.doubt = ""
	if c.run(16 * minutes); c.announced != 15*minutes+30*time.Second {
		t.Fatalf("announced after %v", c.announced)
	}
	c.run(time.Hour)
	c.check(t, 15*minutes+30*time.Second, 20*minutes+30*time.Second)
}

func TestWhatBeginsTheTimeAnew(t *testing.T) {
	for name, c := range map[string]struct {
		begin, end func(*clock)
		ended      time.Duration
	}{
		"work":                        {func(c *clock) { c.State.Nodes[0].Status = raydemand.Running }, func(c *clock) { c.State.Nodes[0].Status = raydemand.Idle }, 40*minutes - time.Second},
		"another Ray session":         {func(c *clock) { c.State.Session = "t" }, func(*clock) {}, 30 * minutes},
		"a doubt of more than 2 min":  {func(c *clock) { c.doubt = "the head is slow" }, func(c *clock) { c.doubt = "" }, 40 * minutes},
		"a reason that ends: no rest": {func(c *clock) { c.Cluster.OwnedBy = "AppWrapper a" }, func(c *clock) { c.Cluster.OwnedBy = "" }, 25 * minutes},
	} {
		clock := newClock(suspends)
		clock.run(10 * minutes)
		c.begin(clock)
		clock.run(20 * minutes)
		c.end(clock)
		clock.run(2 * time.Hour)
		if clock.ended != c.ended {
			t.Errorf("%s from 10 to 20 minutes: ended after %v, want %v", name, clock.ended, c.ended)
		}
	}
}

func TestALookThatFailsOrAReasonVoidsTheAnnouncement(t *testing.T) {
	c := newClock(suspends)
	c.run(16 * minutes)
	c.err = errors.New("unimplemented")
	if step := c.run(25 * minutes); !strings.Contains(step.Text, "what lives in it cannot be seen: unimplemented") {
		t.Errorf("shown %q", step.Text)
	}
	c.err = nil
	c.run(time.Hour)
	c.check(t, 25*minutes, 30*minutes)

	c = newClock(suspends)
	c.run(16 * minutes)
	c.Cluster.OwnedBy = "AppWrapper a"
	c.run(17 * minutes)
	c.Cluster.OwnedBy = ""
	c.run(time.Hour)
	c.check(t, 17*minutes, 22*minutes)
}

func TestWhatALookFindsIsWork(t *testing.T) {
	c := newClock(suspends)
	c.found.Actors.Add("daemon")
	c.found.Actors.Add("other")
	c.found.Actors.More = true
	step := c.run(2 * time.Hour)
	if c.check(t, 0, 0); !strings.Contains(step.Text, "since when actors were alive (daemon, other)") {
		t.Errorf("shown %q", step.Text)
	}
}
