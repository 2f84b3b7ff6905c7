package nodepool

import "fmt"

// immense is how many pods a minimum may ask for beyond those that exist before it counts as a slip: about what the largest
// Kubernetes clusters hold.
const immense = 10_000

// minimumToWrite is what is written into replicas for a group at its minimum: the minimum, unless that is immense. The operator makes
// all the pods that the minimum asks for, whatever replicas says, and nobody can hold it back; but once replicas said so
// too, a minimum that is mended would not end it. Then replicas only cover the pods that exist.
func (a *targetCalculation) minimumToWrite(group *WorkerGroup, hosts int) int {
	existing := a.existingReplicas(group, hosts)
	if (group.Min-existing)*hosts <= immense {
		return group.Min
	}
	a.report(MinimumImmense, groupField(group)+".minReplicas", fmt.Sprint(group.Min),
		fmt.Sprintf("it asks for more than %d pods beyond those that exist, and the operator makes them at once, past the bound on pods in flight", immense),
		"set the minimum that is meant; replicas are not raised with it, so a smaller one ends it")
	return min(max(group.Replicas, existing), group.Min)
}
