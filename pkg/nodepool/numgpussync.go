package nodepool

import (
	"errors"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// SyncMode says when the number of GPUs that the device plugin reports is written into a group's spec.
type SyncMode string

// SyncReport, which is also the meaning of the empty mode, writes nothing. SyncWhenEmpty writes while the group has no
// pods and none are on their way. SyncEnforce writes at any time; running pods keep their number.
const (
	SyncReport    SyncMode = "report"
	SyncWhenEmpty SyncMode = "when-empty"
	SyncEnforce   SyncMode = "enforce"
)

// Valid reports whether m is one of the three modes.
func (m SyncMode) Valid() bool { return m == SyncReport || m == SyncWhenEmpty || m == SyncEnforce }

// Writes reports whether the mode ever writes.
func (m SyncMode) Writes() bool { return m == SyncWhenEmpty || m == SyncEnforce }

// Reasons why a number of GPUs is not written: stable codes of SyncRefusal.
const (
	// SyncRecreate: upgradeStrategy Recreate makes the operator delete all pods of the cluster after such a write
	// (docs/reference/facts.md#recreate).
	SyncRecreate = "recreate"
	// SyncOwned: a RayJob or RayService owns the spec. A RayService creates a new cluster from a changed spec, or
	// reverts it.
	SyncOwned = "owned"
	// SyncQueued: Kueue queues the RayCluster, and restarts it when anything but replicas changes.
	SyncQueued = "queued"
	// SyncSpecRefused: the operator refuses the spec, so no write has an effect. SyncBroken: the group cannot be read.
	SyncSpecRefused = "spec-refused"
	SyncBroken      = "group-broken"
	// SyncFixed: something other than rayStartParams or resources decides the number that Ray gets.
	SyncFixed = "fixed-elsewhere"
	// SyncNoGPU: the pods request no GPU, so the declared number is a count of the user's own.
	SyncNoGPU = "no-gpu-asked"
	// SyncFieldManaged: another program, for example GitOps, applies the worker groups and would revert the write.
	SyncFieldManaged = "field-managed"
	// SyncReverted: a recent write was reverted, so another program writes the same field.
	SyncReverted = "reverted"
	// SyncReportOnly: the mode is report. SyncNotReported: no node proves a number. SyncNotEmpty: the mode is
	// when-empty, and the group has pods, or some are on their way.
	SyncReportOnly  = "report-only"
	SyncNotReported = "not-reported"
	SyncNotEmpty    = "not-empty"
	// SyncNotManaged: the RayCluster must not be written to. SyncNotLeading: another process is the leader.
	SyncNotManaged = "not-managed"
	SyncNotLeading = "not-leading"
	// SyncLater: another patch went first in this cycle, or the last write failed; the next cycle tries again.
	SyncLater = "later"
)

// ErrSyncRefused means that a number of GPUs must not be written into the spec; the SyncRefusal that wraps it says why.
var ErrSyncRefused = errors.New("num-gpus must not be written")

// SyncRefusal says why a number of GPUs is not written into a group's spec.
type SyncRefusal struct {
	// Code is stable; Why is for people.
	Code, Why string
}

// Error returns code and reason.
func (r *SyncRefusal) Error() string { return fmt.Sprintf("%v: %s: %s", ErrSyncRefused, r.Code, r.Why) }

// Unwrap returns ErrSyncRefused.
func (r *SyncRefusal) Unwrap() error { return ErrSyncRefused }

// SyncRefusal returns why the spec forbids writing a number of GPUs into a group, or nil. Writable covers what forbids
// all writes.
func (c *Cluster) SyncRefusal(g *WorkerGroup) *SyncRefusal {
	switch {
	case c.UpgradeStrategy == "Recreate":
		return &SyncRefusal{SyncRecreate, "under upgradeStrategy Recreate the operator deletes every pod of the " +
			"cluster, the head too, when num-gpus changes"}
	case c.Queue.Queued():
		return &SyncRefusal{SyncQueued, "Kueue queues the RayCluster, and takes only a change of replicas without a " +
			"restart: set the number in your own manifest"}
	case c.Owner.Kind != "":
		return &SyncRefusal{SyncOwned, fmt.Sprintf("%s %s owns the spec: set the number there", c.Owner.Kind,
			c.Owner.Name)}
	case c.Refused:
		return &SyncRefusal{SyncSpecRefused, "the operator refuses the spec until it is corrected; see findings"}
	case g.Broken:
		return &SyncRefusal{SyncBroken, "the group has errors; see findings"}
	case g.GPUs.Fixed != "":
		return &SyncRefusal{SyncFixed, g.GPUs.Fixed}
	case g.Reported != nil && g.Reported.Value != nil && *g.Reported.Value == 0:
		return &SyncRefusal{SyncNoGPU, "its pods request no GPU, so the number is a count of the user's own"}
	}
	return nil
}

// Empty reports whether the group has no pod, including terminating ones, and should have none.
func (c *Cluster) Empty(g *WorkerGroup) bool {
	return g.Goal() <= 0 && !slices.ContainsFunc(c.Workers, func(w Worker) bool { return w.Group == g.Name })
}

// NumGPUsTarget is the number of GPUs that one worker group should declare.
type NumGPUsTarget struct {
	Group string
	// Index and Field repeat what was read: the entry of spec.workerGroupSpecs, and where the number belongs in it.
	Index int
	Field string
	GPUs  raydemand.Amount
}

// NumGPUsChange is one guarded write of numbers of GPUs to one RayCluster: all its targets or none.
type NumGPUsChange struct {
	Cluster ClusterKey
	// UID and Generation are those of the object for which the change was decided; any other object is a conflict.
	UID        string
	Generation int64
	Targets    []NumGPUsTarget
	// Term is that of the writer, which is stored with the change; empty without shards.
	Term string
}
