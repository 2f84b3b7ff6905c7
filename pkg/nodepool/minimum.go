package nodepool

import "fmt"

// immense is how many more pods than exist a minimum may ask for before it counts as a mistake: about the size of the
// largest Kubernetes clusters.
const immense = 10_000

// minimumToWrite returns the replicas to write for a group at its minimum: the minimum, unless that is immense. The
// operator creates all pods of the minimum whatever replicas says, and nothing can prevent that. But if replicas said
// so too, correcting the minimum would not end it; so replicas only cover the pods that exist.
func (a *targetCalculation) minimumToWrite(group *WorkerGroup, hosts int) int {
	existing := a.existingReplicas(group, hosts)
	if (group.Min-existing)*hosts <= immense {
		return group.Min
	}
	a.report(MinimumImmense, groupField(group)+".minReplicas", fmt.Sprint(group.Min),
		fmt.Sprintf("it asks for more than %d pods beyond those that exist, and the operator creates them at once, "+
			"past the limit on pods in flight", immense),
		"set the intended minimum; replicas are not raised with it, so a lower minimum ends it")
	return min(max(group.Replicas, existing), group.Min)
}
