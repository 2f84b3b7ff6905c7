package observe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// FindingReverted is the code of the finding about a field manager that keeps setting replicas back.
const FindingReverted = "replicas-reverted"

const (
	// revertWindow is how close together two reverts of one manager are a fight, and how long after the last one the
	// fight is over.
	revertWindow = 10 * time.Minute
	// revertMemory is how close together two reverts are a finding, and how long it is reported: Flux applies a
	// manifest every spec.interval, which is often 10 minutes or more.
	revertMemory = time.Hour
	// enoughReverts reverts are a finding. One may be a person who meant it, or a manifest that is applied once.
	enoughReverts = 2
	// mostManagers bounds the field managers that are remembered. Anyone who writes to the RayCluster chooses the name.
	mostManagers = 32
)

// Reverts is what this process wrote to one RayCluster and what others made of it. It finds a field manager that keeps
// setting replicas back, as Argo CD and Flux do when they apply a manifest again and again. Its zero value knows of no
// write. It is lost with the process, so a fight that goes on is found again after two more reverts.
type Reverts struct {
	written map[string]replicasWrite // by group, until another manager changes it
	reverts map[string]revert        // by field manager
}

// replicasWrite is the number that this process last wrote for a group, and the generation of the RayCluster after it.
type replicasWrite struct {
	replicas   int
	generation int64
}

// revert is the last time that a field manager set replicas back, and how many times it did so in a row, none of them
// more than revertMemory after the one before. until is when the fight is over; zero if it is none.
type revert struct {
	manager    string
	at, until  time.Time
	times      int
	index      int
	group      string
	wrote, set int
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
	maps.DeleteFunc(h.reverts, func(_ string, r revert) bool { return now.Sub(r.at) > revertMemory })
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		last, known := h.written[g.Name]
		if !known || cluster.Generation <= last.generation || g.Replicas == last.replicas {
			continue
		}
		delete(h.written, g.Name)
		if !reverted && cluster.ScaledBy != nodepool.FieldManager {
			reverted = true
			h.note(revert{manager: cluster.ScaledBy, at: now, index: g.Index, group: g.Name, wrote: last.replicas,
				set: g.Replicas})
		}
	}
	return reverted
}

func (h *Reverts) note(r revert) {
	before := h.reverts[r.manager]
	r.times = before.times + 1
	if before.times > 0 && r.at.Sub(before.at) <= revertWindow {
		r.until = r.at.Add(revertWindow)
	}
	if h.reverts == nil {
		h.reverts = map[string]revert{}
	}
	h.reverts[r.manager] = r
	if len(h.reverts) > mostManagers {
		delete(h.reverts, h.oldest())
	}
}

// oldest returns the manager that set replicas back longest ago.
func (h *Reverts) oldest() string {
	return slices.MinFunc(slices.Collect(maps.Keys(h.reverts)), func(a, b string) int {
		return cmp.Or(h.reverts[a].at.Compare(h.reverts[b].at), cmp.Compare(a, b))
	})
}

// found returns the last revert of each manager that keeps setting replicas back.
func (h *Reverts) found(now time.Time) []revert {
	var found []revert
	for _, manager := range slices.Sorted(maps.Keys(h.reverts)) {
		if r := h.reverts[manager]; r.times >= enoughReverts && now.Sub(r.at) <= revertMemory {
			found = append(found, r)
		}
	}
	return found
}

// Pause returns why no worker may be removed during a fight and until when, or "" if there is none.
func (h *Reverts) Pause(now time.Time) string {
	var last revert
	for _, r := range h.found(now) {
		if !now.After(r.until) && r.until.After(last.until) {
			last = r
		}
	}
	if last.until.IsZero() {
		return ""
	}
	return last.text()
}

// Texts describes the last revert of each manager that there is a finding about. A text stays the same until the
// manager sets replicas back again.
func (h *Reverts) Texts(now time.Time) []string {
	found := h.found(now)
	texts := make([]string, len(found))
	for i := range found {
		texts[i] = found[i].text()
	}
	return texts
}

// Findings returns a finding for each manager that keeps setting replicas back.
func (h *Reverts) Findings(now time.Time, cluster *nodepool.Cluster) []raydemand.Finding {
	found := h.found(now)
	findings := make([]raydemand.Finding, len(found))
	for i := range found {
		findings[i] = found[i].finding(now, cluster)
	}
	return findings
}

func (r *revert) finding(now time.Time, cluster *nodepool.Cluster) raydemand.Finding {
	why := "Heliostat wrote replicas, and this field manager set them back. Each time it lowers them, the operator " +
		"deletes workers of its own choice, busy ones too, and Heliostat cannot prevent that"
	if cluster.InTreeAutoscaling {
		why = "Heliostat wrote replicas, and this field manager set them back. With in-tree autoscaling the operator " +
			"keeps the workers beyond the lower number, but drained ones stay if the names of those that leave are lost"
	}
	if !now.After(r.until) {
		why += fmt.Sprintf(". Heliostat removes no worker until %s; groups still grow", clockTime(r.until))
	}
	return raydemand.Finding{
		Code:     FindingReverted,
		Severity: raydemand.Error,
		Object:   "RayCluster " + cluster.Key.String(),
		Field:    fmt.Sprintf("spec.workerGroupSpecs[%d].replicas", r.index),
		Seen: fmt.Sprintf("%s changed group %s from %d to %d at %s, revert no. %d", r.name(), r.group, r.wrote, r.set,
			clockTime(r.at), r.times),
		Why: why,
		Fix: "let it ignore replicas and scaleStrategy of the worker groups, as docs/howto/gitops.md shows for Argo " +
			"CD and Flux, or let Heliostat only watch: annotate the RayCluster with heliostat.dev/mode: shadow",
	}
}

func (r *revert) text() string {
	text := fmt.Sprintf("%s: sets replicas back to its own numbers (group %s: %d → %d at %s)", r.name(), r.group,
		r.wrote, r.set, clockTime(r.at))
	if !r.until.IsZero() {
		text += "; no worker is removed until " + clockTime(r.until)
	}
	return text
}

func (r *revert) name() string {
	if r.manager == "" {
		return "a field manager without a name"
	}
	return "field manager " + r.manager
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05 MST") }

// Forget forgets groups that are gone.
func (h *Reverts) Forget(gone func(group string) bool) {
	maps.DeleteFunc(h.written, func(group string, _ replicasWrite) bool { return gone(group) })
}
