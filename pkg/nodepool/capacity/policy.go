// Package capacity is the vocabulary of capacity policies: what a RayCluster keeps ready beyond what its work uses,
// when, and what happens to a RayCluster without work. It says what a policy wants at a moment, and for how many
// workers nodes are kept. It must not read a clock, a file or Kubernetes objects, and it decides nothing about workers:
// the planner does. Package policytext below it reads the JSON form.
package capacity

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Annotation of a RayCluster holds its policy as JSON.
const Annotation = "heliostat.dev/capacity-policy"

// The bounds of a policy. Each entry is placed once more in each plan, so there are few of them.
const (
	MaxEntries   = 32
	MaxSchedules = 16
	MaxCount     = 10_000
	// LeastIdle is the shortest time without work after which a RayCluster is suspended. A user who only thinks about
	// the next call must not lose the head.
	LeastIdle = 10 * time.Minute
	// MostIdle is ten years.
	MostIdle = 10 * 365 * 24 * time.Hour
)

// Policy is what a RayCluster keeps ready, and what happens when it has no work. Its JSON form is the annotation.
type Policy struct {
	KeepWarm      []Warm      `json:"keepWarm,omitempty"`
	KeepWarmNodes []WarmNodes `json:"keepWarmNodes,omitempty"`
	Idle          *Idle       `json:"idle,omitempty"`
}

// Warm is capacity that stays free, on top of what work and requests use. Entries add up: no worker counts for two.
type Warm struct {
	// Group is a worker group: Count of its workers are free. In a multi-host group a worker is a whole replica. It is
	// empty if Resources or Slice say what is free.
	Group string `json:"group,omitempty"`
	// Resources, LabelSelectors and Slice describe one bundle: there is room for Count of them.
	Resources      raydemand.Bundle            `json:"resources,omitempty"`
	LabelSelectors []raydemand.Selector        `json:"labelSelectors,omitempty"`
	Slice          *raydemand.SliceRequirement `json:"slice,omitempty"`
	// Count applies while no schedule does.
	Count     int64      `json:"count"`
	Schedules []Schedule `json:"schedules,omitempty"`
}

// Schedule replaces the count of an entry from each time of Start to the next time of End.
type Schedule struct {
	// Start and End are cron expressions of five fields.
	Start string `json:"start"`
	End   string `json:"end"`
	// TimeZone is an IANA name, such as Europe/Berlin; empty means UTC.
	TimeZone string `json:"timeZone,omitempty"`
	Count    int64  `json:"count"`
	// Window says when the schedule applies. A schedule without one never does.
	Window Window `json:"-"`
}

// Window is the time that a schedule applies to.
type Window interface {
	Open(at time.Time) bool
}

// Idle says what happens to a RayCluster without work. 0 means that nothing happens.
type Idle struct {
	SuspendAfter Duration `json:"suspendAfter,omitzero"`
}

// Duration is a time span that JSON writes as 2h or 1h30m0s.
type Duration time.Duration

// MarshalText writes the span.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a span as MarshalText writes it.
func (d *Duration) UnmarshalText(text []byte) error {
	span, err := time.ParseDuration(string(text))
	*d = Duration(span)
	return err
}

// String writes 2h rather than 2h0m0s.
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Wanted is what one entry wants at a moment.
type Wanted struct {
	// Entry is the position of the entry in the policy.
	Entry int
	*Warm
	Count int64
	// Schedule describes the schedule that gives the count; empty if none applies.
	Schedule string
}

// At returns what the policy wants at a moment: one Wanted for each entry with a count above 0. Of several schedules
// that apply, the highest count counts, so that their order does not matter.
func (p *Policy) At(at time.Time) []Wanted {
	var all []Wanted
	for i := range p.KeepWarm {
		w := &p.KeepWarm[i]
		found := Wanted{Entry: i, Warm: w}
		if found.Count, found.Schedule = countAt(w.Count, w.Schedules, at); found.Count > 0 {
			all = append(all, found)
		}
	}
	return all
}

// KeepsAt reports whether the policy wants workers or nodes ready at a moment.
func (p *Policy) KeepsAt(at time.Time) bool {
	return len(p.At(at))+len(p.WarmNodesAt(at)) > 0
}

// countAt returns the count of an entry at a moment, and the schedule that gives it; empty if none applies.
func countAt(base int64, schedules []Schedule, at time.Time) (count int64, schedule string) {
	count = base
	for k := range schedules {
		s := &schedules[k]
		if s.Window != nil && s.Window.Open(at) && (schedule == "" || s.Count > count) {
			count, schedule = s.Count, s.String()
		}
	}
	return count, schedule
}

// String describes the schedule: from "0 8 * * 1-5" to "0 19 * * 1-5" (Europe/Berlin).
func (s *Schedule) String() string {
	return fmt.Sprintf("from %q to %q (%s)", s.Start, s.End, cmp.Or(s.TimeZone, "UTC"))
}

// Request returns one bundle of an entry without a group.
func (w *Warm) Request(count int64) raydemand.Request {
	return raydemand.Request{
		Bundle: w.Resources, Selectors: w.LabelSelectors, Slice: w.Slice, Count: count,
	}.Sliced()
}

// Written is a policy and where it is written.
type Written struct {
	Policy
	// Source names the annotation.
	Source string
	// Fault says why the policy cannot be read; it then wants nothing. Field is the path of the faulty field.
	Fault string
}
