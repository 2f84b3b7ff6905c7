// Package jobs says for which Ray jobs the workers of a Ray cluster work, as far as a few cheap readings of the GCS
// show it: which drivers are connected, and which actors hold what on which node. Tasks are not read. The package must
// not read anything itself, or decide anything.
package jobs

import (
	"cmp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Unknown is the job of work that no reading maps to one. No job has this name.
const Unknown = "(unknown)"

// MostActors is how many actors a reading has at most.
const MostActors = 5000

// Job is a job whose driver is connected.
type Job struct {
	// Name is the submission id of a job that was submitted, otherwise Ray's id of the job in hex.
	Name string
	// Submitted says that Name is a submission id. Entrypoint is the driver's command; it may be empty.
	Submitted  bool
	Entrypoint string
}

// Actor is a living actor with a place.
type Actor struct {
	// Job is the name of its job; empty if the job is not among the connected ones.
	Job  string
	Node raydemand.NodeID
	// Resources are what it holds, as Ray names them: within a placement group with a suffix.
	Resources map[string]float64
}

// Reading is what was read of a Ray cluster.
type Reading struct {
	Jobs   []Job
	Actors []Actor
	// Truncated: there are more actors, so what they hold belongs to no known job.
	Truncated bool
}

// Hold is what the actors of one job hold of a worker.
type Hold struct {
	Job       string
	GPUs, CPU float64
}

// Held is a reading by pods. A nil Held knows nothing.
type Held struct {
	// Jobs are those whose drivers are connected, sorted by name.
	Jobs []Job
	// ByPod is what actors hold, by the pod of their node, sorted by job.
	ByPod map[string][]Hold
	// Truncated is that of the reading.
	Truncated bool
}

// On returns the reading by the pods of the nodes that Ray reports.
func (r Reading) On(nodes []raydemand.Node) *Held {
	held := &Held{Jobs: slices.Clone(r.Jobs), ByPod: map[string][]Hold{}, Truncated: r.Truncated}
	slices.SortFunc(held.Jobs, func(a, b Job) int { return cmp.Compare(a.Name, b.Name) })
	pods := make(map[raydemand.NodeID]string, len(nodes))
	for i := range nodes {
		pods[nodes[i].ID] = nodes[i].Instance
	}
	for i := range r.Actors {
		actor := &r.Actors[i]
		pod := pods[actor.Node]
		if pod == "" {
			continue
		}
		hold := Hold{Job: cmp.Or(actor.Job, Unknown), GPUs: actor.amount(raydemand.GPU),
			CPU: actor.amount(raydemand.CPU)}
		if hold.GPUs == 0 && hold.CPU == 0 {
			continue
		}
		holds := held.ByPod[pod]
		at := slices.IndexFunc(holds, func(h Hold) bool { return h.Job == hold.Job })
		if at < 0 {
			holds, at = append(holds, Hold{Job: hold.Job}), len(holds)
		}
		holds[at].GPUs += hold.GPUs
		holds[at].CPU += hold.CPU
		held.ByPod[pod] = holds
	}
	for _, holds := range held.ByPod {
		slices.SortFunc(holds, func(a, b Hold) int { return cmp.Compare(a.Job, b.Job) })
	}
	return held
}

// amount returns how much of a resource the actor holds. Within a placement group it holds GPU_group_HEX, and with an
// index of the bundle also GPU_group_INDEX_HEX; both are the same GPU. Checked with Ray 2.60.
func (a *Actor) amount(resource string) float64 {
	if own := a.Resources[resource]; own > 0 {
		return own
	}
	var most float64
	for name, amount := range a.Resources {
		if strings.HasPrefix(name, resource+"_group_") {
			most = max(most, amount)
		}
	}
	return most
}

// Only returns the job that all work belongs to, because no other driver is connected and no actor belongs to another
// job; empty if there is no such job, or if not all actors are known.
func (h *Held) Only() string {
	if h == nil || len(h.Jobs) != 1 || h.Truncated {
		return ""
	}
	only := h.Jobs[0].Name
	for _, holds := range h.ByPod {
		for i := range holds {
			if holds[i].Job != only {
				return ""
			}
		}
	}
	return only
}
