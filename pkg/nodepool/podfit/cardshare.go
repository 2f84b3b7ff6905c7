package podfit

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// CardShare is the part of cards that the KAI scheduler gives a pod by annotations of its template
// (docs/reference/facts.md#kai-shares). Such a pod requests no resource: a pod of KAI's own reserves the whole card.
type CardShare struct {
	// Annotation is gpu-fraction or gpu-memory, and Value its value.
	Annotation, Value string
	// Cards is on how many cards the pod has its part; at least 1.
	Cards int64
	// PerCard is how many such pods one card holds; 0 if the annotation alone does not show it.
	PerCard int64
}

// mismatch returns why a node has too few cards for the share, even if they were empty.
func (s *CardShare) mismatch(node *Node) (m Mismatch, misses bool) {
	have := node.Usable(gpuinfo.NvidiaGPU)
	if s == nil || have >= raydemand.Whole(s.Cards) {
		return m, false
	}
	return Mismatch{kind: cardTooSmall, what: fmt.Sprintf("has %s %s where %d is needed for the annotation %s: %s",
		gpuinfo.NvidiaGPU, have, s.Cards, s.Annotation, s.Value)}, true
}

// podsOn returns how many pods with the share the cards hold that a node has.
func (s *CardShare) podsOn(cards int64) int64 {
	switch {
	case s == nil:
		return Unbounded
	case s.PerCard == 0 && cards >= s.Cards:
		return Unbounded
	}
	return podsOverAlike(cards, s.PerCard, s.Cards)
}
