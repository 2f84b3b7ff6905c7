package capacity

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about policies. Plans, RayClusters and the doctor report them with the same words.
const (
	// FindingGroupUnknown: a policy names a worker group that does not exist.
	FindingGroupUnknown = "warm-group-unknown"
	// FindingNodesUnused: a policy wants warm nodes, and none can be asked for.
	FindingNodesUnused = "warm-nodes-unused"
	// FindingNodesLeft: nothing keeps or removes a CapacityBuffer that Heliostat has made.
	FindingNodesLeft = "warm-nodes-left"
)

// NoWorkers is what an entry of keepWarm without effect does, NoNodes one of keepWarmNodes.
const (
	NoWorkers = "nothing is kept warm"
	NoNodes   = "no nodes are kept"
)

// GroupUnknown reports an entry, such as keepWarm[0], that names a group that the RayCluster does not have.
func GroupUnknown(source, entry, group, loss string) raydemand.Finding {
	return raydemand.Finding{Code: FindingGroupUnknown, Severity: raydemand.Error, Object: source,
		Field: entry + ".group", Seen: group,
		Why: fmt.Sprintf("there is no worker group of this name, so %s for it", loss),
		Fix: "write the name of a worker group"}
}

// GroupsUnknown reports the entries that name a group that the RayCluster does not have.
func (w *Written) GroupsUnknown(has func(group string) bool) (all []raydemand.Finding) {
	check := func(entry, group, loss string) {
		if group != "" && !has(group) {
			all = append(all, GroupUnknown(w.Source, entry, group, loss))
		}
	}
	for i := range w.KeepWarm {
		check(fmt.Sprintf("keepWarm[%d]", i), w.KeepWarm[i].Group, NoWorkers)
	}
	for i := range w.KeepWarmNodes {
		check(fmt.Sprintf("keepWarmNodes[%d]", i), w.KeepWarmNodes[i].Group, NoNodes)
	}
	return all
}
