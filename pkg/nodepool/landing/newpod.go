package landing

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Settle compares what was derived with what workers show: Shown are workers of the spec as it is now, living ones may
// be older. Workers decide what the derivation left open, but not which one of several values the next pod has. What is
// certain stays so unless a worker of this spec has something else, or all living ones have nothing.
//
// It reports whether a new pod has the only value for certain, and whether the value is open. If neither, a new pod has
// nothing of that name.
func (a *Announced) Settle(living []string) (certain, open bool) {
	if a.Certain {
		value := a.Values[0]
		if len(a.Shown) == 0 && (!slices.Contains(living, "") || slices.Contains(living, value)) ||
			slices.Contains(a.Shown, value) {
			return true, false
		}
		a.Present, a.Certain = false, false
		a.Why = "its workers differ from what follows from their nodes: " + a.Why
		a.Values = sorted(slices.DeleteFunc(slices.Concat(a.Values, a.Shown), func(v string) bool { return v == "" }))
		return false, true
	}
	a.Shown = sorted(slices.Concat(a.Shown, living))
	if len(a.Shown) != 1 || len(a.Values) > 1 || a.PerReplica {
		return false, true
	}
	a.Values = a.Shown
	return a.Shown[0] != "", false
}

func sorted(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}

// AddCertain adds to the resources and labels of a pod that has not joined what it announces for certain.
func AddCertain(
	certain []Announced, resources raydemand.Bundle, labels map[string]string,
) (raydemand.Bundle, map[string]string) {
	for _, a := range certain {
		switch {
		case a.Name != raydemand.AcceleratorTypePrefix:
			if _, has := labels[a.Name]; !has {
				labels = with(labels, a.Name, a.Values[0])
			}
		case resources.AcceleratorType() == "":
			if resources = resources.Clone(); resources == nil {
				resources = raydemand.Bundle{}
			}
			resources[a.Name+a.Values[0]] = raydemand.One
		}
	}
	return resources, labels
}

// with returns a copy of labels with one more.
func with(labels map[string]string, key, value string) map[string]string {
	more := map[string]string{}
	maps.Copy(more, labels)
	more[key] = value
	return more
}

// Open are the labels, and the accelerator type, that a new pod may turn out to have.
type Open []Announced

// Named returns what is known about one of them, or nil.
func (o Open) Named(name string) *Announced {
	at := slices.IndexFunc(o, func(a Announced) bool { return a.Name == name })
	if at < 0 {
		return nil
	}
	return &o[at]
}

// AddTo adds to the labels of a pod that has not joined those that it may have. IsOpen reports true of their values. A
// label whose value is the name of the pod's replica has that name if it is known. Until then, the value is one that no
// selector names, because a new replica has a new name.
func (o Open) AddTo(labels map[string]string, replica string) map[string]string {
	for i := range o {
		a := &o[i]
		if _, known := labels[a.Name]; a.PerReplica && replica != "" {
			labels = with(labels, a.Name, replica)
		} else if values := a.Values; !known {
			if a.PerReplica {
				values = []string{newReplica}
			}
			labels = with(labels, a.Name, openValue(values, a.Present))
		}
	}
	return labels
}

// Awaits returns what a new pod with these labels must turn out to have to match a selector. It reports false if the
// pod cannot match.
func (o Open) Awaits(selector raydemand.Selector, labels map[string]string) (all []Awaited, possible bool) {
	labels = o.AddTo(labels, "")
	for _, c := range selector {
		awaited := Awaited{o.Named(c.Key), c}
		switch {
		case matches(c, labels):
		case awaited.Announced == nil || !awaited.mayBeMet():
			return nil, false
		default:
			all = append(all, awaited)
		}
	}
	return all, true
}

// Awaited is a label or resource that a new pod must turn out to have.
type Awaited struct {
	*Announced
	// Must is the condition on the value; its key is empty if any value will do.
	Must raydemand.Constraint
}

// Met reports whether a value meets the condition; the empty text is a pod without the label.
func (a Awaited) Met(value string) bool {
	labels := map[string]string{}
	if value != "" {
		labels[a.Must.Key] = value
	}
	return raydemand.Selector{a.Must}.Matches(labels)
}

// mayBeMet reports whether one of the possible values meets the condition. Nobody knows the name of a new replica.
func (a Awaited) mayBeMet() bool {
	return a.Must.Op == raydemand.NotIn || !a.PerReplica && slices.ContainsFunc(a.Must.Values, a.Allows)
}

// String returns what the pod must announce: accelerator_type:H100, or label zone=b.
func (a Awaited) String() string {
	if a.Name == raydemand.AcceleratorTypePrefix {
		return a.Name + a.Must.Expression()
	}
	return "label " + a.Name + "=" + a.Must.Expression()
}

// openPrefix begins the text that stands for a value that is not known yet. No label has it in its value.
const openPrefix = "\x00"

// newReplica stands for the name of a replica that does not exist yet.
const newReplica = "\x01"

// openValue returns the text that stands for the value of a label that a new pod may turn out to have: one of values,
// or any if there are none. present says that it has one of them for certain.
func openValue(values []string, present bool) string {
	text := openPrefix
	if present && len(values) > 0 {
		text += openPrefix
	}
	return text + strings.Join(values, ",")
}

// IsOpen reports whether a label's value is not known yet.
func IsOpen(value string) bool { return strings.HasPrefix(value, openPrefix) }

// FirstMatch returns the index of the first selector that labels match for certain, or -1. No selectors match any
// labels.
func FirstMatch(selectors []raydemand.Selector, labels map[string]string) int {
	if len(selectors) == 0 {
		return 0
	}
	return slices.IndexFunc(selectors, func(s raydemand.Selector) bool {
		return !slices.ContainsFunc(s, func(c raydemand.Constraint) bool { return !matches(c, labels) })
	})
}

// matches reports whether labels satisfy a constraint for certain: with each value that a label may have.
func matches(c raydemand.Constraint, labels map[string]string) bool {
	value := labels[c.Key]
	if !IsOpen(value) {
		return raydemand.Selector{c}.Matches(labels)
	}
	list, present := strings.CutPrefix(value[len(openPrefix):], openPrefix)
	if list == "" || c.Op == raydemand.In && !present {
		return false
	}
	for one := range strings.SplitSeq(list, ",") {
		if slices.Contains(c.Values, one) != (c.Op == raydemand.In) {
			return false
		}
	}
	return true
}

// OnTPUHost returns the resources and labels of the first host of a replica, or of another one, if a replica is a slice
// of TPUs: the first has worker ID 0 and the resource by which programs reserve the slice
// (docs/reference/facts.md#tpu-slices). Other resources and labels stay as they are.
func OnTPUHost(
	first bool, hosts int64, resources raydemand.Bundle, labels map[string]string,
) (raydemand.Bundle, map[string]string) {
	podType := labels[TPUPodType]
	if podType == "" || IsOpen(podType) {
		podType = ""
		for _, name := range resources.Names() {
			if IsTPUHead(name) {
				podType = PodTypeOfTPUHead(name)
			}
		}
	}
	if podType == "" {
		return resources, labels
	}
	resources = resources.Clone()
	id := "0"
	if first {
		resources[TPUHead(podType)] = max(resources[TPUHead(podType)], raydemand.One)
	} else {
		maps.DeleteFunc(resources, func(name string, _ raydemand.Amount) bool { return IsTPUHead(name) })
		var others []string
		for other := int64(1); other < hosts; other++ {
			others = append(others, strconv.FormatInt(other, 10))
		}
		id = openValue(others, true)
	}
	if _, declared := labels[TPUWorkerID]; !declared {
		labels = with(labels, TPUWorkerID, id)
	}
	return resources, labels
}
