package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// syncNumGPUs compares the numbers of GPUs of all groups, reports differences, and writes what may be written, all
// groups in one patch. It never writes in a cycle that changes replicas: each patch is computed from a spec that
// nothing changed in between.
func (c *Controller) syncNumGPUs(ctx context.Context, r *record, o *addon.Cycle) {
	o.NumGPUs = map[string]addon.GroupNumGPUs{}
	cluster, ray := &o.View.Cluster, rayGPUs(o.View)
	var due []nodepool.NumGPUsTarget
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		numbers := addon.GroupNumGPUs{NumGPUs: g.NumGPUs(ray[g.Name]), Mode: g.NumGPUsSync}
		for _, finding := range g.NumGPUsFindings(numbers.NumGPUs) {
			finding.Object = "RayCluster " + cluster.Key.String()
			o.Findings = append(o.Findings, finding)
		}
		switch refusal := c.syncRefusal(r, *o, g, numbers.NumGPUs); {
		case refusal != nil:
			numbers.Code, numbers.Why = refusal.Code, refusal.Why
			numbers.IfManaged = refusal.Code == nodepool.SyncNotManaged &&
				c.syncObstacle(r, *o, g, numbers.NumGPUs) == nil
		case numbers.Mismatch:
			due = append(due,
				nodepool.NumGPUsTarget{Group: g.Name, Index: g.Index, Field: g.GPUs.Field, GPUs: *numbers.Reported})
		}
		o.NumGPUs[g.Name] = numbers
	}
	if len(due) > 0 {
		c.writeNumGPUs(ctx, r, o, due)
	} else {
		r.numGPUs.conflicts = 0
	}
}

// syncRefusal returns why a group's number must not be written now; nil if it must be, or if there is nothing to
// write.
func (c *Controller) syncRefusal(
	r *record, o addon.Cycle, g *nodepool.WorkerGroup, n nodepool.NumGPUs,
) *nodepool.SyncRefusal {
	v := o.View
	if n.Reported == nil && g.NumGPUsSync.Writes() {
		return because(nodepool.SyncNotReported, n.Sources.Reported)
	}
	if !n.Mismatch {
		return nil
	}
	switch {
	case !g.NumGPUsSync.Writes():
		return because(nodepool.SyncReportOnly,
			"annotate heliostat.dev/num-gpus-sync: when-empty or enforce to write it")
	case v.Mode != nodepool.Managed:
		return because(nodepool.SyncNotManaged, v.Why.Message)
	case !c.kube.MayWrite(v.Cluster.Key):
		return because(nodepool.SyncNotLeading, "another process is the leader")
	}
	return c.syncObstacle(r, o, g, n)
}

func because(code, why string) *nodepool.SyncRefusal {
	return &nodepool.SyncRefusal{Code: code, Why: why}
}

// syncObstacle returns why a number that may be written is not written now, or nil.
func (c *Controller) syncObstacle(
	r *record, o addon.Cycle, g *nodepool.WorkerGroup, n nodepool.NumGPUs,
) *nodepool.SyncRefusal {
	v := o.View
	if refusal := v.Cluster.SyncRefusal(g); refusal != nil {
		return refusal
	}
	if refusal := r.numGPUs.refusal(g.Name, *n.Reported, v.Now); refusal != nil {
		return refusal
	}
	if g.NumGPUsSync == nodepool.SyncWhenEmpty && (!v.Cluster.Empty(g) || o.Intent.Launch[g.Name] > 0) {
		return because(nodepool.SyncNotEmpty, "the group has pods or is about to get some")
	}
	if busy := slices.ContainsFunc(o.Actions,
		func(a addon.Action) bool { return a.Kind == addon.ActionPatch }); busy || o.Withheld ||
		o.Err != nil {
		return because(nodepool.SyncLater, "another patch was written in this cycle")
	}
	if r.numGPUs.rest.Resting(v.Now) {
		return because(nodepool.SyncLater, "the last write failed")
	}
	return nil
}

// writeNumGPUs writes all numbers that are due, or none.
func (c *Controller) writeNumGPUs(ctx context.Context, r *record, o *addon.Cycle, due []nodepool.NumGPUsTarget) {
	v := o.View
	if !c.stillManaged(ctx, v.Cluster) {
		o.Again = true
		return
	}
	started := c.config.Now()
	generation, err := c.kube.SyncNumGPUs(ctx, nodepool.NumGPUsChange{
		Cluster: v.Cluster.Key, UID: v.Cluster.UID, Generation: v.Cluster.Generation, Targets: due})
	took := c.config.Now().Sub(started)
	var refusal *nodepool.SyncRefusal
	result := addon.ResultOK
	before := r.numGPUs.conflicts
	r.numGPUs.conflicts = 0
	switch {
	case errors.As(err, &refusal):
		result = addon.ResultRefused
	case errors.Is(err, nodepool.ErrConflict):
		result, o.Again = addon.ResultConflict, true
		r.numGPUs.conflicts = before + 1
	case errors.Is(err, nodepool.ErrReadOnly), errors.Is(err, nodepool.ErrNotLeading):
		result, o.Again = addon.ResultConflict, false
	case err != nil:
		result = addon.ResultError
		r.numGPUs.rest.Fail(v.Now)
		o.Err = fmt.Errorf("writing num-gpus: %w", err)
	default:
		r.numGPUs.rest = addon.Pause{}
		r.memory.Patches.generation = generation
	}
	attempt := addon.Action{At: started, Kind: addon.ActionSync, Result: result, Took: took}
	c.recordNumGPUs(ctx, r, o, due, attempt, err)
}

// recordNumGPUs records a write of numbers: one action for each group, and one log line and one Event for each number
// that was written. attempt is the action without group and message.
func (c *Controller) recordNumGPUs(
	ctx context.Context, r *record, o *addon.Cycle, due []nodepool.NumGPUsTarget, attempt addon.Action, err error,
) {
	v := o.View
	for _, target := range due {
		numbers := o.NumGPUs[target.Group]
		message := fmt.Sprintf("group %s: %s: %q, which is %s", target.Group, target.Field, target.GPUs,
			numbers.Sources.Reported)
		switch attempt.Result {
		case addon.ResultOK:
			r.numGPUs.note(target, nil, v.Now)
			c.config.Log.InfoContext(ctx, "num-gpus written", "cluster", v.Cluster.Key.String(), "group", target.Group,
				"to", target.GPUs.String())
			c.kube.Event(v.Cluster, false, addon.ReasonNumGPUsWritten, message)
		case addon.ResultRefused:
			refusal, _ := errors.AsType[*nodepool.SyncRefusal](err)
			r.numGPUs.note(target, refusal, v.Now)
			numbers.Code, numbers.Why = refusal.Code, refusal.Why
			message = refusal.Error()
		default:
			numbers.Code, numbers.Why = nodepool.SyncLater, err.Error()
			message = err.Error()
		}
		o.NumGPUs[target.Group] = numbers
		action := attempt
		action.Group, action.Message = target.Group, message
		o.Actions = append(o.Actions, action)
	}
}

const (
	// refusalLasts is how long a refusal that was read from managedFields counts: nothing that is watched shows when
	// they change.
	refusalLasts = time.Minute
	// revertWindow and mostRewrites: a number that was written this often within that time and is gone again is
	// another writer's to set.
	revertWindow = 10 * time.Minute
	mostRewrites = 2
)

// numGPUs is what is remembered of the numbers of GPUs that were written. If it is lost, one more write is refused or
// reverted.
type numGPUs struct {
	groups map[string]writtenGPUs
	rest   addon.Pause
	// conflicts counts the conflicts in a row, which slow the loop down.
	conflicts int
}

// writtenGPUs are the numbers that were written for a group within revertWindow, and the last refusal.
type writtenGPUs struct {
	writes  []numGPUsWrite
	refusal *nodepool.SyncRefusal
	refused time.Time
}

type numGPUsWrite struct {
	gpus raydemand.Amount
	at   time.Time
}

// rayGPUs returns the GPUs that living Ray nodes announce, by group.
func rayGPUs(v observe.View) map[string]nodepool.RayGPUs {
	newest := map[string]observe.Member{}
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

func announces(m observe.Member) bool { return m.Joined() && len(m.Node.Total) > 0 }

// refusal returns the refusal that was recently learned for this group and number, or nil.
func (s *numGPUs) refusal(group string, gpus raydemand.Amount, now time.Time) *nodepool.SyncRefusal {
	known := s.groups[group]
	if known.refusal != nil && now.Sub(known.refused) < refusalLasts {
		return known.refusal
	}
	same := 0
	for _, w := range known.writes {
		if w.gpus == gpus && now.Sub(w.at) < revertWindow {
			same++
		}
	}
	if same < mostRewrites {
		return nil
	}
	return because(nodepool.SyncReverted, fmt.Sprintf(
		"%s was written %d times within %s and was reverted each time: set the number at its source",
		gpus, same, revertWindow))
}

// note remembers a number that was written or, with a refusal, was not.
func (s *numGPUs) note(target nodepool.NumGPUsTarget, refusal *nodepool.SyncRefusal, now time.Time) {
	known := s.groups[target.Group]
	if known.refusal = refusal; refusal != nil {
		known.refused = now
	} else {
		old := func(w numGPUsWrite) bool { return now.Sub(w.at) >= revertWindow }
		known.writes = append(slices.DeleteFunc(known.writes, old), numGPUsWrite{target.GPUs, now})
	}
	if s.groups == nil {
		s.groups = map[string]writtenGPUs{}
	}
	s.groups[target.Group] = known
}
