package nodepool

// GuardAnnotation names, on a pod, which of its annotations Heliostat wrote to keep node autoscalers from removing the
// pod's node. Heliostat removes only what it names; every other value is a user's and stays as it is.
const GuardAnnotation = "heliostat.dev/guard"

// DoNotDisruptAnnotation keeps Karpenter, and SafeToEvictAnnotation the Cluster Autoscaler, from evicting a pod of
// their own accord (docs/reference/facts.md#guards-of-node-autoscalers). They do so with DoNotDisrupt and SafeToEvict.
const (
	DoNotDisruptAnnotation = "karpenter.sh/do-not-disrupt"
	DoNotDisrupt           = "true"
	SafeToEvictAnnotation  = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	SafeToEvict            = "false"
)

// GuardMark says who wrote one of the two annotations.
type GuardMark uint8

// Unmarked: the pod does not have the annotation. MarkedByUs: Heliostat wrote it, and its value still keeps the pod.
// MarkedByUser: somebody else wrote the value that keeps the pod. MarkedOtherwise: somebody else wrote another value.
const (
	Unmarked GuardMark = iota
	MarkedByUs
	MarkedByUser
	MarkedOtherwise
)

// Guard is what the annotations of one pod say to node autoscalers, as of one version of the pod.
type Guard struct {
	DoNotDisrupt, SafeToEvict GuardMark
	// Ours: the pod has the annotation heliostat.dev/guard, whatever it names.
	Ours bool
	// Version is the pod's resourceVersion. A write on any other version is a conflict.
	Version string
}

// The parties that can have guarded a pod, as Guard.By names them.
const (
	GuardedByHeliostat = "heliostat"
	GuardedByUser      = "user"
)

// By returns who keeps node autoscalers from evicting the pod; empty if nobody does. A user who wrote one of the
// annotations counts, also where Heliostat has added the other one.
func (g Guard) By() string {
	switch {
	case g.DoNotDisrupt == MarkedByUser || g.SafeToEvict == MarkedByUser:
		return GuardedByUser
	case g.DoNotDisrupt == MarkedByUs || g.SafeToEvict == MarkedByUs:
		return GuardedByHeliostat
	}
	return ""
}

// Complete reports whether the pod has both annotations, whoever wrote them, so that nothing is left to add.
func (g Guard) Complete() bool { return g.DoNotDisrupt != Unmarked && g.SafeToEvict != Unmarked }

// GuardChange is one write to one pod.
type GuardChange struct {
	Cluster ClusterKey
	Pod     string
	// UID protects a pod that was made again under the same name.
	UID string
	// Read is the guard of the version that the change was decided from.
	Read Guard
	// Keep adds the annotations that the pod lacks; otherwise those that Heliostat wrote are removed.
	Keep bool
}
