package landing

import (
	"fmt"
	"strconv"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// CardShare is the part of cards that the KAI scheduler gives a pod by annotations of its template
// (docs/reference/facts.md#kai-shares). Such a pod requests no resource: a pod of KAI's own reserves the whole card.
type CardShare struct {
	// Annotation is gpu-fraction, gpu-memory or, if it is invalid, gpu-fraction-num-devices, and Value its value.
	Annotation, Value string
	// Cards is on how many cards the pod has its part; at least 1.
	Cards int64
	// PerCard is how many such pods one card holds; 0 if that depends on the card.
	PerCard int64
	// MemoryMiB is the part of each card; 0 for a fraction.
	MemoryMiB int64
	// Refused says why KAI's webhook refuses the pod; empty if it does not.
	Refused string
}

// finding returns what KAI refuses.
func (s *CardShare) finding() []raydemand.Finding {
	if s == nil || s.Refused == "" {
		return nil
	}
	return []raydemand.Finding{{Code: GPUFractionRefused, Severity: raydemand.Error, Field: s.Annotation,
		Seen: strconv.Quote(s.Value), Why: "KAI's webhook refuses every pod of the group: " + s.Refused,
		Fix: "correct the annotation, or leave it out"}}
}

// mismatch returns why a node cannot hold a pod with the share, even if it were empty.
func (s *CardShare) mismatch(node *Node) (m mismatch, misses bool) {
	if s == nil {
		return m, false
	}
	have, annotation := node.Usable(gpuinfo.NvidiaGPU), fmt.Sprintf("the annotation %s: %s", s.Annotation, s.Value)
	memory, labelled := sharing.KAICardMemory(node.Labels)
	switch gpus := ReadNode(sharing.Reader{}, node); {
	case have < raydemand.Whole(s.Cards):
		return mismatch{kind: cardTooSmall, what: fmt.Sprintf("has %s %s where %d is needed for %s",
			gpuinfo.NvidiaGPU, have, s.Cards, annotation)}, true
	case !gpus.KAIShares():
		return mismatch{kind: otherMode, what: "has MIG instances, of which the KAI scheduler gives no part (" +
			annotation + ")"}, true
	case s.MemoryMiB > 0 && !labelled && !node.Declared:
		return mismatch{kind: otherMode, what: "lacks the label " + sharing.LabelMemory + ", without which the KAI " +
			"scheduler places no pod with " + annotation}, true
	case s.MemoryMiB > memory && labelled:
		return mismatch{kind: cardTooSmall, what: fmt.Sprintf("has cards of %d MiB where %d is needed for %s", memory,
			s.MemoryMiB, annotation)}, true
	}
	return m, false
}

// onCardOf returns how many pods with the share one card of the node holds; 0 if the node does not show it.
func (s *CardShare) onCardOf(node *Node) int64 {
	if memory, labelled := sharing.KAICardMemory(node.Labels); s.MemoryMiB > 0 && labelled {
		return memory / s.MemoryMiB
	}
	return s.PerCard
}

// podsOn returns how many pods with the share the cards hold that a node has.
func (s *CardShare) podsOn(node *Node, cards int64) int64 {
	if s == nil {
		return Unbounded
	}
	perCard := s.onCardOf(node)
	if perCard == 0 && cards >= s.Cards {
		return Unbounded
	}
	return podsOverAlike(cards, perCard, s.Cards)
}
