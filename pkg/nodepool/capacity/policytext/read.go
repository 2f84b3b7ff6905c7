// Package policytext reads the JSON form of a capacity policy. A fault names the field, its value and what would be
// right. It gives schedules their windows. The package must not know Kubernetes objects, and it reads no clock.
package policytext

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
	_ "time/tzdata" // the image has no zone files

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// MaxBytes bounds the text of a policy. The largest policy within the bounds of package capacity has about half of it.
const MaxBytes = 64 << 10

// policyWant shows a policy.
const policyWant = `a policy such as {"keepWarm": [{"group": "gpu", "count": 2}]}`

// Read reads a policy.
func Read(text []byte) (capacity.Policy, *fieldpath.Fault) {
	text = bytes.TrimSpace(text)
	if fault := checkText(text); fault != nil {
		return capacity.Policy{}, fault
	}
	in, doc := fieldpath.Read(text)
	members := in.Members()
	policy := capacity.Policy{
		KeepWarm:      entries(members.Pick("keepWarm"), capacity.MaxEntries, "entries", warm),
		KeepWarmNodes: entries(members.Pick("keepWarmNodes"), capacity.MaxEntries, "entries", warmNodes),
		Idle:          idle(members.Pick("idle")),
	}
	members.Done()
	if fault := doc.Strict(); fault != nil {
		return capacity.Policy{}, fault
	}
	return policy, nil
}

// checkText accepts one JSON object without repeated keys.
func checkText(text []byte) *fieldpath.Fault {
	if len(text) > MaxBytes {
		return &fieldpath.Fault{Value: fmt.Sprintf("%d bytes", len(text)), Want: fmt.Sprintf("at most %d", MaxBytes)}
	}
	if fault := fieldpath.CheckObject(text, policyWant); fault != nil {
		return fault
	}
	return nil
}

// The bounds of a bundle.
const (
	maxResources = 32
	maxSelectors = 8
	maxLabels    = 16
)

// entries reads a list of at most so many objects.
func entries[T any](in fieldpath.JSON, most int, named string, read func(fieldpath.JSON) T) (all []T) {
	list := in.Objects()
	if len(list) > most {
		in.Fail(fmt.Sprintf("at most %d %s", most, named))
		return nil
	}
	for _, each := range list {
		all = append(all, read(each))
	}
	return all
}

func warm(in fieldpath.JSON) capacity.Warm {
	members := in.Members()
	group, resources, slice := members.Pick("group"), members.Pick("resources"), members.Pick("slice")
	selectors := members.Pick("labelSelectors")
	w := capacity.Warm{
		Group:          group.Text(),
		Resources:      bundle(resources),
		LabelSelectors: selectorsOf(selectors),
		Slice:          sliceOf(slice),
		Count:          members.Pick("count").Count(0, capacity.MaxCount, 0),
		Schedules:      schedules(members),
	}
	switch bundled := !resources.Absent() || !slice.Absent(); {
	case w.Group != "" && bundled:
		group.Fail("either a group or resources and slice, not both")
	case w.Group != "" && !selectors.Absent():
		selectors.Fail("no labelSelectors beside a group: they belong to resources")
	case w.Group == "" && !bundled:
		group.Fail("the name of a worker group, or resources or slice in its place")
	case w.Group == "" && w.Request(1).Bundle.IsZero():
		resources.Fail(`amounts above 0, such as {"GPU": 1}`)
	}
	members.Done()
	return w
}

func warmNodes(in fieldpath.JSON) capacity.WarmNodes {
	members := in.Members()
	group := members.Pick("group")
	w := capacity.WarmNodes{Group: group.Text(), Count: members.Pick("count").Count(0, capacity.MaxCount, 0),
		Schedules: schedules(members)}
	if w.Group == "" {
		group.Fail("the name of a worker group, whose pods say which nodes are meant")
	}
	members.Done()
	return w
}

func bundle(in fieldpath.JSON) raydemand.Bundle {
	var all raydemand.Bundle
	const want = `amounts such as {"GPU": 1}, to four decimal places`
	if in.Into(&all, want) {
		if len(all) > maxResources {
			in.Fail(fmt.Sprintf("at most %d resources", maxResources))
		}
		for name, amount := range all {
			if name == "" || amount < 0 || amount > mostAmount {
				in.Fail(want + ", none below 0")
			}
		}
	}
	return all
}

// mostAmount is 100 TiB in bytes, as in requests.
const mostAmount raydemand.Amount = 100 << 40 * raydemand.One

func selectorsOf(in fieldpath.JSON) []raydemand.Selector {
	var all []raydemand.Selector
	if in.Into(&all, `a list of objects of label expressions such as [{"zone": "in(a,b)"}]`) {
		large := func(s raydemand.Selector) bool { return len(s) > maxLabels }
		if len(all) > maxSelectors || slices.ContainsFunc(all, large) {
			in.Fail(fmt.Sprintf("at most %d selectors, each with at most %d labels", maxSelectors, maxLabels))
		}
	}
	return all
}

func sliceOf(in fieldpath.JSON) *raydemand.SliceRequirement {
	if in.Absent() || in.Failed() {
		return nil
	}
	required, err := raydemand.ParseSliceRequirement(in.Raw())
	if refused, is := errors.AsType[*raydemand.SliceError](err); is {
		in.FailBelow(refused.Field, refused.Value, refused.Want)
	}
	return required
}

func schedules(of *fieldpath.Members) []capacity.Schedule {
	return entries(of.Pick("schedules"), capacity.MaxSchedules, "schedules", schedule)
}

func schedule(in fieldpath.JSON) capacity.Schedule {
	members := in.Members()
	start, end, zone := members.Pick("start"), members.Pick("end"), members.Pick("timeZone")
	s := capacity.Schedule{Start: start.Text(), End: end.Text(), TimeZone: zone.Text(),
		Count: members.Pick("count").Count(0, capacity.MaxCount, 0)}
	location := locationOf(zone)
	w := window{start: expression(start), end: expression(end), location: location}
	if !in.Failed() && reflect.DeepEqual(w.start, w.end) { // also if they are written differently
		end.Fail("another time than start")
	}
	if members.Member("count").Absent() {
		members.Member("count").Fail(fmt.Sprintf("a whole number from 0 to %d", capacity.MaxCount))
	}
	s.Window = w
	members.Done()
	return s
}

// locationOf reads an IANA time zone. The name Local would depend on the machine.
func locationOf(in fieldpath.JSON) *time.Location {
	name := in.Text()
	location, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		in.Fail("an IANA time zone such as Europe/Berlin")
		return time.UTC
	}
	return location
}

func idle(in fieldpath.JSON) *capacity.Idle {
	if in.Absent() {
		return nil
	}
	members := in.Members()
	i := &capacity.Idle{SuspendAfter: span(members.Pick("suspendAfter"))}
	members.Done()
	return i
}

// span reads a duration; 0 if it is absent.
func span(in fieldpath.JSON) capacity.Duration {
	text := in.Text()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d != 0 && (d < capacity.LeastIdle || d > capacity.MostIdle) {
		in.Fail(fmt.Sprintf("a duration such as 2h, at least %s and at most %s", capacity.Duration(capacity.LeastIdle),
			capacity.Duration(capacity.MostIdle)))
	}
	return capacity.Duration(d)
}
