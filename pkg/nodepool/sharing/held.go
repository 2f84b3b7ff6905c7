package sharing

import (
	"fmt"
)

// Pod is what a pod on a node shows about its use of the node's GPUs.
type Pod struct {
	Namespace, Name, Node string
	Annotations           map[string]string
	// Requests are the extended resources that all its containers request.
	Requests map[string]int64
}

// Share is what pods hold of one card: how many shares, memory in MiB or in units, memory in percent of the card's, and
// percent of cores.
type Share struct{ Shares, Memory, Percent, Cores int64 }

func (s Share) plus(other Share) Share {
	return Share{
		s.Shares + other.Shares, s.Memory + other.Memory, s.Percent + other.Percent, s.Cores + other.Cores,
	}
}

// byCard has the shares that pods hold, by card. A pod without a record of its card is charged to every card: it is on
// one of them, and no card then appears to have more room than it has. The card that its scheduler would choose proves
// nothing: what was on the cards when it chose is unknown, and a pod without a record may have passed by that
// scheduler.
type byCard[K comparable] struct {
	shares     map[K]Share
	everywhere []Share
	// cut returns what a share takes of a card; nil if every card gives what is requested.
	cut func(card K, s Share) Share
	// unrecorded is how many pods are charged to every card. pod is the first of them by name, and annotation the one
	// that it lacks.
	unrecorded      int
	pod, annotation string
}

// Of returns what pods hold of a card.
func (b *byCard[K]) Of(card K) Share {
	sum := b.shares[card]
	for _, share := range b.everywhere {
		if b.cut != nil {
			share = b.cut(card, share)
		}
		sum = sum.plus(share)
	}
	return sum
}

func (b *byCard[K]) add(card K, s Share) {
	if b.shares == nil {
		b.shares = map[K]Share{}
	}
	b.shares[card] = b.shares[card].plus(s)
}

// addUnrecorded charges a pod to every card, because it lacks an annotation.
func (b *byCard[K]) addUnrecorded(pod Pod, annotation string, s Share) {
	if s == (Share{}) {
		return
	}
	b.everywhere = append(b.everywhere, s)
	if name := pod.Namespace + "/" + pod.Name; b.unrecorded == 0 || name < b.pod {
		b.pod, b.annotation = name, annotation
	}
	b.unrecorded++
}

// Unrecorded names a pod that is charged to every one of the node's cards, in a sentence. It is empty if there is none.
// On a node with one card, that is where the pod is.
func (b *byCard[K]) Unrecorded(cards int) string {
	if b.unrecorded == 0 || cards < 2 {
		return ""
	}
	more := ""
	if b.unrecorded > 1 {
		more = fmt.Sprintf(", and %d more pods like it", b.unrecorded-1)
	}
	return fmt.Sprintf("pod %s has no annotation %s that names a card of this node, so its part counts on each of the "+
		"%d cards%s", b.pod, b.annotation, cards, more)
}

// PodAnnotations returns the annotations in which schedulers record what a pod holds.
func PodAnnotations() []string {
	return []string{hamiAllocated, hamiToAllocate, hamiMIG, volcanoIDs, ackAllocation, ackCores, gpushareCard,
		gpushareAmount,
		koordinatorAllocated}
}

// unrecorded reports a pod that is charged to every card; message is empty if there is none.
func (r *reading) unrecorded(message string) {
	if message != "" {
		r.problem(CardUnrecorded, message)
	}
}
