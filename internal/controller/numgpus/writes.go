// Package numgpus holds the rules for writing num-gpus into the spec of a RayCluster: what living Ray nodes announce,
// and which writes were refused or reverted. It must not write anything.
package numgpus

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const (
	// refusalLasts is how long a refusal that was read from managedFields counts: nothing that is watched shows when
	// they change.
	refusalLasts = time.Minute
	// revertWindow and mostRewrites: a number that was written this often within that time and is gone again is
	// another writer's to set.
	revertWindow = 10 * time.Minute
	mostRewrites = 2
)

// Writes remembers the writes of num-gpus by group. If it is lost, one more write is refused or reverted.
type Writes struct {
	writes  map[string][]written
	refused map[string]refused
}

type written struct {
	gpus raydemand.Amount
	at   time.Time
}

type refused struct {
	refusal *nodepool.SyncRefusal
	until   time.Time
}

// RayGPUs returns the GPUs that living Ray nodes announce, by group.
func RayGPUs(v observation.View) map[string]nodepool.RayGPUs {
	newest := map[string]membership.Member{}
	for _, m := range v.Members {
		if best, known := newest[m.Group]; announces(m) && (!known || m.CreatedAt.After(best.CreatedAt)) {
			newest[m.Group] = m
		}
	}
	all := make(map[string]nodepool.RayGPUs, len(newest))
	for _, m := range v.Members {
		if !announces(m) {
			continue
		}
		known := all[m.Group]
		if known.Newest == nil {
			amount := newest[m.Group].Node.Total[raydemand.GPU]
			known.Newest = &amount
		}
		known.Nodes++
		if m.Node.Total[raydemand.GPU] == *known.Newest {
			known.Same++
		}
		all[m.Group] = known
	}
	return all
}

func announces(m membership.Member) bool { return m.Joined() && len(m.Node.Total) > 0 }

// Refusal returns the refusal that was recently learned for this group and number, or nil.
func (s *Writes) Refusal(group string, gpus raydemand.Amount, now time.Time) *nodepool.SyncRefusal {
	if known := s.refused[group]; known.refusal != nil && now.Before(known.until) {
		return known.refusal
	}
	writes := slices.DeleteFunc(s.writes[group], func(w written) bool { return now.Sub(w.at) >= revertWindow })
	if len(writes) == 0 {
		delete(s.writes, group)
		return nil
	}
	s.writes[group] = writes
	same := 0
	for _, w := range writes {
		if w.gpus == gpus {
			same++
		}
	}
	if same < mostRewrites {
		return nil
	}
	return &nodepool.SyncRefusal{
		Code: nodepool.SyncReverted,
		Why: fmt.Sprintf("%s was written %d times within %s and was reverted each time: set the number at its source",
			gpus, same, revertWindow),
	}
}

func (s *Writes) Wrote(target nodepool.NumGPUsTarget, now time.Time) {
	if s.writes == nil {
		s.writes = map[string][]written{}
	}
	s.writes[target.Group] = append(s.writes[target.Group], written{target.GPUs, now})
}

func (s *Writes) Refuse(group string, refusal *nodepool.SyncRefusal, now time.Time) {
	if s.refused == nil {
		s.refused = map[string]refused{}
	}
	s.refused[group] = refused{refusal, now.Add(refusalLasts)}
}

// Quiet need nobody's attention: they are intended, or end by themselves.
var Quiet = []string{
	"",
	nodepool.SyncReportOnly,
	nodepool.SyncNotReported,
	nodepool.SyncNotEmpty,
	nodepool.SyncNotManaged,
	nodepool.SyncNotLeading,
	nodepool.SyncLater,
}

// Forget forgets groups that are gone.
func (s *Writes) Forget(gone func(group string) bool) {
	maps.DeleteFunc(s.writes, func(group string, _ []written) bool { return gone(group) })
	maps.DeleteFunc(s.refused, func(group string, _ refused) bool { return gone(group) })
}
