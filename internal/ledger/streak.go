package ledger

import "time"

// Streak is how long GPUs of a RayCluster have been idle without a break, or its pods if it has no GPUs.
type Streak struct {
	// Since is when the first of them became idle; zero if none is idle now.
	Since time.Time
	// Money is what idle parts have cost since then.
	Money float64
	// GPUs and Pods are idle now, AllGPUs and AllPods are all that there are.
	GPUs, Pods, AllGPUs, AllPods float64
	// Hourly is what the idle parts cost per hour now.
	Hourly float64
	// Group, Why and Owner are those of the largest idle part.
	Group, Why, Owner string
}

// observe continues the streak with the rates of an observation at a moment, the last one having been at another, or
// begins a new one. Time without observations ends it.
func (s *Streak) observe(rates []rate, before, now time.Time, unseen bool) {
	last := *s
	*s = Streak{}
	var largest float64
	for i := range rates {
		r := &rates[i]
		if r.Cause == Head {
			continue
		}
		s.AllGPUs += r.GPUSeconds
		s.AllPods += r.PodSeconds
		if r.Cause != Idle {
			continue
		}
		s.GPUs += r.GPUSeconds
		s.Pods += r.PodSeconds
		s.Hourly += r.Money * time.Hour.Seconds()
		if size := r.GPUSeconds + r.PodSeconds/1024; size > largest { // pods decide among those without GPUs
			largest, s.Group, s.Why, s.Owner = size, r.Group, r.Why, r.Owner
		}
	}
	if s.Pods == 0 || s.AllGPUs > 0 && s.GPUs == 0 {
		*s = Streak{AllGPUs: s.AllGPUs, AllPods: s.AllPods}
		return
	}
	s.Since = now
	if !last.Since.IsZero() && !unseen {
		s.Since = last.Since
		s.Money = last.Money + last.Hourly*seconds(before, now)/time.Hour.Seconds()
	}
}
