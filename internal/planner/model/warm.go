package model

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Warm is the warm capacity of a snapshot: what its capacity policy wants free now, on top of what demand and requests
// use.
type Warm struct {
	// Policy says where it is written.
	Policy string `json:"policy,omitempty"`
	// Keep are the entries in the order in which they are served.
	Keep []WarmEntry `json:"keep"`
}

// WarmEntry is a number of free workers of a group, or free room for a number of bundles.
type WarmEntry struct {
	// Name is where the entry is in the policy, such as keepWarm[0].
	Name string `json:"name"`
	// Group is the worker group whose workers are free; empty if there is room for bundles.
	Group     string                      `json:"group,omitempty"`
	Resources raydemand.Bundle            `json:"resources,omitempty"`
	Selectors []raydemand.Selector        `json:"labelSelectors,omitempty"`
	Slice     *raydemand.SliceRequirement `json:"slice,omitempty"`
	// Count is how many replicas of the group, or bundles.
	Count int64 `json:"count"`
	// Schedule describes the schedule that gives the count; empty if none does.
	Schedule string `json:"schedule,omitempty"`
}

// WarmOf returns the entries of a policy for the moment of a snapshot; nil if it wants nothing.
func WarmOf(source string, wanted []capacity.Wanted) *Warm {
	if len(wanted) == 0 {
		return nil
	}
	w := &Warm{Policy: source}
	for _, each := range wanted {
		entry := WarmEntry{Name: fmt.Sprintf("keepWarm[%d]", each.Entry), Group: each.Group, Count: each.Count,
			Schedule: each.Schedule}
		if each.Group == "" {
			request := each.Request(each.Count)
			entry.Resources, entry.Selectors, entry.Slice = request.Bundle, request.Selectors, request.Slice
		}
		w.Keep = append(w.Keep, entry)
	}
	return w
}

// Request returns the bundles of an entry without a group.
func (e *WarmEntry) Request() raydemand.Request {
	return raydemand.Request{Bundle: e.Resources, Selectors: e.Selectors, Slice: e.Slice, Count: e.Count}
}

// requests lists the bundles of all entries without a group.
func (w *Warm) requests() (list []raydemand.Request) {
	if w == nil {
		return nil
	}
	for i := range w.Keep {
		if w.Keep[i].Group == "" {
			list = append(list, w.Keep[i].Request())
		}
	}
	return list
}

// WarmPlan is what a plan does for one entry. Ready, Coming and Launching count replicas or bundles that are free on
// workers that have joined Ray, on pods that were requested earlier, and on pods that the plan launches.
type WarmPlan struct {
	WarmEntry
	Ready     int64 `json:"ready"`
	Coming    int64 `json:"coming,omitempty"`
	Launching int64 `json:"launching,omitempty"`
	// Pods counts, by group, the pods that are free for this entry alone, without those that the plan launches.
	Pods map[string]int64 `json:"pods,omitempty"`
	// Kept are the idle workers that stay for this entry and for nothing else.
	Kept   []string `json:"kept,omitempty"`
	Reason Reason   `json:"reason"`
}
