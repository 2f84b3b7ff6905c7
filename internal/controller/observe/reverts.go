package observe

import (
	"fmt"
	"maps"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// FindingReverted is the code of the finding that a field manager keeps setting replicas back.
const FindingReverted = "replicas-reverted"

const (
	// revertMemory is how close together two reverts are a fight, and for how long a fight is reported: Flux applies a
	// manifest every spec.interval, which is often 10 minutes or more. One revert may be a person who meant it, or a
	// manifest that is applied once.
	revertMemory = time.Hour
	// revertPause is how long after the last revert of a fight no worker is removed.
	revertPause = 10 * time.Minute
)

// Reverts is what this process wrote to one RayCluster and what others made of it. It finds that replicas are set back
// again and again, as Argo CD and Flux do when they apply a manifest. Its zero value knows of no write. It is lost with
// the process, so a fight that goes on is found again after two more reverts.
type Reverts struct {
	written map[string]replicasWrite // by group, until another manager changes it
	// seen says what the last revert did, at is when, and times counts those in a row, none of them more than
	// revertMemory after the one before. index is that of the group.
	seen         string
	at           time.Time
	times, index int
}

// replicasWrite is the number that this process last wrote for a group, and the generation of the RayCluster after it.
type replicasWrite struct {
	replicas   int
	generation int64
}

// Wrote remembers what was written; generation is that of the RayCluster after the write.
func (h *Reverts) Wrote(generation int64, targets []nodepool.Target) {
	if h.written == nil {
		h.written = map[string]replicasWrite{}
	}
	for _, t := range targets {
		h.written[t.Group] = replicasWrite{replicas: t.Replicas, generation: generation}
	}
}

// Observe adds one reading, and reports whether another field manager has changed the replicas since this process wrote
// them. A change of several groups at once counts as one. Who wrote is what the API server says of the list of all
// groups, which has one owner (docs/reference/facts.md#owner-of-the-worker-groups).
func (h *Reverts) Observe(now time.Time, cluster *nodepool.Cluster) (reverted bool) {
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		last, known := h.written[g.Name]
		if !known || cluster.Generation <= last.generation || g.Replicas == last.replicas {
			continue
		}
		delete(h.written, g.Name)
		if !reverted && cluster.ScaledBy != nodepool.FieldManager {
			reverted = true
			if now.Sub(h.at) > revertMemory {
				h.times = 0
			}
			h.times, h.at, h.index = h.times+1, now, g.Index
			h.seen = fmt.Sprintf("field manager %q set replicas of group %s back from %d to %d at %s, revert no. %d",
				cluster.ScaledBy, g.Name, last.replicas, g.Replicas, clockTime(now), h.times)
		}
	}
	return reverted
}

// Pause returns why no worker may be removed during a fight and until when, or "" if there is none.
func (h *Reverts) Pause(now time.Time) string {
	if now.Sub(h.at) > revertPause {
		return ""
	}
	return h.Text(now)
}

// Text describes the last revert while there is a finding about it; otherwise it is empty. It stays the same until
// replicas are set back again.
func (h *Reverts) Text(now time.Time) string {
	if h.times < 2 || now.Sub(h.at) > revertMemory {
		return ""
	}
	return h.seen + "; no worker is removed until " + clockTime(h.at.Add(revertPause))
}

// Findings returns a finding if replicas are set back again and again.
func (h *Reverts) Findings(now time.Time, cluster *nodepool.Cluster) []raydemand.Finding {
	if h.Text(now) == "" {
		return nil
	}
	return []raydemand.Finding{{
		Code: FindingReverted, Severity: raydemand.Error, Object: "RayCluster " + cluster.Key.String(),
		Field: fmt.Sprintf("spec.workerGroupSpecs[%d].replicas", h.index), Seen: h.Text(now),
		Why: "each time replicas are lowered so, the operator deletes workers of its own choice, busy ones too; with " +
			"in-tree autoscaling it keeps them, but drained ones stay if the names of those that leave are lost. " +
			"Heliostat cannot prevent either; groups still grow",
		Fix: "let it ignore replicas and scaleStrategy of the worker groups, as docs/howto/gitops.md shows for Argo " +
			"CD and Flux, or let Heliostat only watch: annotate the RayCluster with heliostat.dev/mode: shadow",
	}}
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05 MST") }

// Forget forgets groups that are gone.
func (h *Reverts) Forget(gone func(group string) bool) {
	maps.DeleteFunc(h.written, func(group string, _ replicasWrite) bool { return gone(group) })
}
