package sharing

import (
	"fmt"
	"strconv"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// kaiCardMemory returns the memory of a card that the KAI scheduler gives to pods with the annotation gpu-memory, from
// the node's labels: it rounds down to hundreds of MiB, and takes 1 TiB and more for bytes. Without the label, KAI
// places no such pod on the node (docs/reference/facts.md#kai-shares).
func kaiCardMemory(labels map[string]string) (mib int64, labelled bool) {
	const tib = 1 << 20
	mib, err := strconv.ParseInt(labels[LabelMemory], 10, 64)
	if mib >= tib {
		mib >>= 20
	}
	return mib - mib%100, err == nil
}

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

// CardShareOf reads the annotations by which the KAI scheduler gives a pod a part of a card, or of several, and applies
// the rules of KAI's webhook to them (docs/reference/facts.md#kai-shares): a fraction between 0 and 1 or an amount of
// memory in MiB, not both, no limit of whole GPUs beside it, and at least one card. It is nil without them.
func CardShareOf(annotations map[string]string, limitsGPUs func() bool) *CardShare {
	const most = 1 << 40
	fraction, hasFraction := annotations["gpu-fraction"]
	memory, hasMemory := annotations["gpu-memory"]
	devices, hasDevices := annotations["gpu-fraction-num-devices"]
	if !hasFraction && !hasMemory && !hasDevices {
		return nil
	}
	part, errPart := strconv.ParseFloat(fraction, 64)
	mib, errMemory := strconv.ParseUint(memory, 10, 64)
	cards, errCards := strconv.ParseUint(devices, 10, 64)
	share := &CardShare{Annotation: "gpu-fraction", Value: fraction, Cards: 1}
	if hasMemory {
		share.Annotation, share.Value = "gpu-memory", memory
	}
	switch {
	case hasFraction && hasMemory:
		share.Refused = "a pod has a fraction or an amount of memory, not both"
	case limitsGPUs():
		share.Refused = "a pod with a part of a card requests no " + gpuinfo.NvidiaGPU
	case hasMemory && (errMemory != nil || mib == 0):
		share.Refused = "want MiB, a whole number of at least 1"
	case hasFraction && (errPart != nil || !(part > 0 && part < 1)):
		share.Refused = "want a number between 0 and 1"
	case hasDevices && (errCards != nil || cards == 0 || !hasFraction && !hasMemory):
		share.Annotation, share.Value = "gpu-fraction-num-devices", devices
		share.Refused = "want the number of cards, at least 1, beside gpu-fraction or gpu-memory"
	case hasMemory:
		share.MemoryMiB = int64(min(mib, most))
	default:
		share.PerCard = int64(min(1/part, most))
	}
	if errCards == nil {
		share.Cards = int64(min(max(cards, 1), most))
	}
	return share
}

// OnCard returns how many pods with the share one card of a node with these labels holds; 0 if the node does not show
// it.
func (s *CardShare) OnCard(labels map[string]string) int64 {
	if memory, labelled := kaiCardMemory(labels); s.MemoryMiB > 0 && labelled {
		return memory / s.MemoryMiB
	}
	return s.PerCard
}

// OfCard returns the part of each of its cards that a pod has on a node with these labels; false if that is unknown.
func (s *CardShare) OfCard(labels map[string]string) (part float64, known bool) {
	if s.MemoryMiB > 0 {
		memory, labelled := kaiCardMemory(labels)
		return float64(s.MemoryMiB) / float64(max(memory, 1)), labelled && s.Refused == ""
	}
	part, err := strconv.ParseFloat(s.Value, 64)
	return part, err == nil && s.Refused == ""
}

// Misses returns why no card of a node can hold the part, even if it were empty; empty if one can. tooSmall: the cards
// are, and otherwise the KAI scheduler gives no part of them. declared: the node is a shape, which may have more
// labels.
func (s *CardShare) Misses(gpus GPUs, labels map[string]string, declared bool) (why string, tooSmall bool) {
	memory, labelled := kaiCardMemory(labels)
	annotation := s.Annotation + ": " + s.Value
	switch {
	// With the mixed strategy KAI places no such pod there, and with the single strategy the pod sees no GPU.
	case gpus.Kind == gpuinfo.MIG || gpus.Profile != nil:
		return "has MIG instances, of which the KAI scheduler gives no part (the annotation " + annotation + ")", false
	case s.MemoryMiB > 0 && !labelled && !declared:
		return "lacks the label " + LabelMemory + ", without which the KAI scheduler places no pod with the " +
			"annotation " + annotation, false
	case s.MemoryMiB > memory && labelled:
		return fmt.Sprintf("has cards of %d MiB where %d is needed for the annotation %s", memory, s.MemoryMiB,
			annotation), true
	}
	return "", false
}
