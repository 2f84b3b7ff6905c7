// Package giveback is what a RayCluster gives back on demand: what is asked for (Ask), and what is agreed
// (Reservation), which an annotation of the RayCluster holds. The package must not know Kubernetes objects, and it
// reads no clock. Which workers cost least is decided in addon/giveback.
package giveback

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Annotation on a RayCluster holds its Reservation. Heliostat writes it when somebody asks, and removes it when the
// reservation ends.
const Annotation = "heliostat.dev/give-back"

var (
	// ErrRefused says that what is asked for cannot be given back, and why.
	ErrRefused = errors.New("refused")
	// ErrNotNow says that it may be given back later, and why not now.
	ErrNotNow = errors.New("not now")
)

// The bounds of an Ask.
const (
	MaxGPUs         = 10_000
	DefaultDeadline = 10 * time.Minute
	MinDeadline     = time.Minute
	MaxDeadline     = 24 * time.Hour
	MaxWorkers      = 1000
	// MinHold is how much later than the deadline a reservation ends at the earliest.
	MinHold = time.Minute
)

// Ask is what somebody wants back, as the body of the REST call writes it.
type Ask struct {
	// GPUs is how many, in Ray's units (num_gpus).
	GPUs int64 `json:"gpus"`
	// Group is the worker group that gives them, Pool the node pool on which the workers run; exactly one is set.
	Group string `json:"group,omitempty"`
	Pool  string `json:"pool,omitempty"`
	// DeadlineSeconds is how long the work has to move or to end.
	DeadlineSeconds int64 `json:"deadlineSeconds,omitempty"`
	// Until is when the groups may grow again; zero means when the reservation is deleted.
	Until time.Time `json:"until,omitzero"`
	// Force also ends work that cannot move, when the deadline is over.
	Force bool `json:"force,omitempty"`
	// DryRun only says what would be given back.
	DryRun bool `json:"dryRun,omitempty"`
	// Taker is the RayCluster of higher priority, as namespace/name, that takes the GPUs; empty if somebody asks over
	// REST. Pods are then the only workers that may go. Neither is part of the REST call.
	Taker string   `json:"taker,omitempty"`
	Pods  []string `json:"-"`
}

// ReadAsk reads an Ask. now is the time of the call.
func ReadAsk(text []byte, now time.Time) (Ask, *fieldpath.Fault) {
	if fault := fieldpath.CheckObject(text, `an object such as {"gpus": 8, "group": "h100"}`); fault != nil {
		return Ask{}, fault
	}
	in, doc := fieldpath.Read(text)
	members := in.Members()
	a := askOf(members)
	a.DryRun = members.Pick("dryRun").Flag()
	members.Done()
	if earliest := now.Add(a.Within() + MinHold); !a.Until.IsZero() && a.Until.Before(earliest) {
		members.Member("until").Fail("a time at least a minute after the deadline: " +
			earliest.UTC().Format(time.RFC3339) + " or later")
	}
	return a, doc.Strict()
}

// askOf reads what a call and the annotation have in common.
func askOf(members *fieldpath.Members) Ask {
	a := Ask{
		GPUs:  members.Pick("gpus").Count(1, MaxGPUs, 0),
		Group: members.Pick("group").Text(), Pool: members.Pick("pool").Text(),
		DeadlineSeconds: members.Pick("deadlineSeconds").Count(int64(MinDeadline.Seconds()),
			int64(MaxDeadline.Seconds()), int64(DefaultDeadline.Seconds())),
		Until: members.Pick("until").Time(), Force: members.Pick("force").Flag(),
	}
	if a.GPUs == 0 {
		members.Member("gpus").Fail(fmt.Sprintf("how many GPUs to give back, from 1 to %d", MaxGPUs))
	}
	if (a.Group == "") == (a.Pool == "") {
		members.Member("group").Fail("either a worker group or a pool")
	}
	return a
}

// Within returns how long the work has to move or to end.
func (a Ask) Within() time.Duration { return time.Duration(a.DeadlineSeconds) * time.Second }

// LeastDrain returns how long a worker is drained at least before its work may be ended. A node that could not be
// drained at once, for example because work came and went there, has less than the whole time; one that is drained much
// later, for example after a freeze, does not end at once.
func (a Ask) LeastDrain() time.Duration { return max(a.Within()-time.Minute, a.Within()/2) }

// From names where the GPUs come from: "group h100".
func (a Ask) From() string {
	if a.Group != "" {
		return "group " + a.Group
	}
	return "pool " + a.Pool
}

// Worker is one worker that is given back.
type Worker struct {
	Pod   string `json:"pod"`
	UID   string `json:"uid"`
	Group string `json:"group"`
	GPUs  int64  `json:"gpus"`
	// Why says what its loss costs: "idle", "2 replicas of Serve move".
	Why string `json:"why"`
	// State is what it does now: works, leaves or gone. The annotation does not have it.
	State string `json:"state,omitempty"`
}

// The states of a Worker: it has work, it is drained or about to be, or its pod is gone.
const (
	Works  = "works"
	Leaves = "leaves"
	Gone   = "gone"
)

// State is a Reservation and what has become of it.
type State struct {
	Reservation
	// Given is how many GPUs the workers had that are gone.
	Given int64 `json:"given"`
}

// StateOf returns what has become of a reservation. of returns the state of a worker.
func StateOf(r Reservation, of func(Worker) string) State {
	s := State{Reservation: r}
	s.Workers = slices.Clone(r.Workers)
	for i := range s.Workers {
		w := &s.Workers[i]
		if w.State = of(*w); w.State == Gone {
			s.Given += w.GPUs
		}
	}
	return s
}

// Reservation is an Ask with what is agreed.
type Reservation struct {
	Ask
	// Deadline is when the work on the workers must have moved or ended.
	Deadline time.Time `json:"deadline"`
	Workers  []Worker  `json:"workers"`
	// Hold is how many GPUs the groups may have together until the reservation ends, and PodGPUs how many a pod of each
	// has.
	Hold    int64            `json:"hold"`
	PodGPUs map[string]int64 `json:"podGPUs"`
}

// ReadReservation reads the annotation.
func ReadReservation(text []byte) (*Reservation, *fieldpath.Fault) {
	if fault := fieldpath.CheckObject(text, "what `autoscaler give-back` writes"); fault != nil {
		return nil, fault
	}
	in, doc := fieldpath.Read(text)
	members := in.Members()
	r := &Reservation{Ask: askOf(members), Deadline: members.Pick("deadline").Time(),
		Hold: members.Pick("hold").Count(0, 1<<40, -1), PodGPUs: map[string]int64{}}
	r.Taker = members.Pick("taker").Text()
	if r.Hold < 0 {
		members.Member("hold").Fail("how many GPUs the groups may have meanwhile")
	}
	workers := members.Pick("workers").Objects()
	if len(workers) > MaxWorkers {
		members.Member("workers").Fail(fmt.Sprintf("at most %d workers", MaxWorkers))
		workers = nil
	}
	for _, each := range workers {
		worker := each.Members()
		r.Workers = append(r.Workers, Worker{Pod: worker.Pick("pod").NonEmpty("the name of a pod"),
			UID: worker.Pick("uid").NonEmpty("the UID of the pod"), Group: worker.Pick("group").Text(),
			GPUs: worker.Pick("gpus").Count(0, MaxGPUs, 0), Why: worker.Pick("why").Text()})
		worker.Done()
	}
	perGroup, _ := members.Pick("podGPUs").Named(`GPUs by group, such as {"gpu": 8}`)
	for _, gpus := range perGroup {
		r.PodGPUs[gpus.Name()] = gpus.Count(0, MaxGPUs, 0)
	}
	members.Done()
	if r.Deadline.IsZero() {
		members.Member("deadline").Fail("a time such as 2026-01-31T12:00:00Z")
	}
	return r, doc.Strict()
}

// Began returns when the reservation began.
func (r *Reservation) Began() time.Time { return r.Deadline.Add(-r.Within()) }

// Over reports whether the reservation has ended.
func (r *Reservation) Over(now time.Time) bool {
	return r != nil && !r.Until.IsZero() && !now.Before(r.Until)
}

// Has reports whether a pod is given back.
func (r *Reservation) Has(uid string) bool {
	return r != nil && slices.ContainsFunc(r.Workers, func(w Worker) bool { return w.UID == uid })
}

// Notice is what the workers of the reservation show: they go, and Ray moves their work.
func (r *Reservation) Notice() *departure.Notice {
	return departure.Of(departure.GivenBack, r.String()).Until(r.Deadline)
}

// Quota is what holds the groups down. It has no name if nothing does.
func (r *Reservation) Quota() (landing.Quota, bool) {
	if r == nil {
		return landing.Quota{}, false
	}
	takes := raydemand.Bundle{}
	for group, gpus := range r.PodGPUs {
		takes[group] = raydemand.Whole(gpus)
	}
	return landing.Quota{Name: "the reservation by give-back of " + r.From(), Resource: raydemand.GPU,
		Amount: raydemand.Whole(r.Hold), PodTakes: takes, Why: r.String()}, true
}

// String says what is given back: "give-back of 8 GPUs of group h100, until 2026-01-31T12:00:00Z".
func (r *Reservation) String() string {
	until := "the reservation is deleted"
	if !r.Until.IsZero() {
		until = r.Until.UTC().Format(time.RFC3339)
	}
	taker := ""
	if r.Taker != "" {
		taker = " for RayCluster " + r.Taker
	}
	return fmt.Sprintf("give-back of %s of %s%s, until %s", GPUs(r.GPUs), r.From(), taker, until)
}

// GPUs writes a number of GPUs.
func GPUs(n int64) string {
	if n == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", n)
}
