package sharing

import (
	"strconv"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// KAICardMemory returns the memory of a card that the KAI scheduler gives to pods with the annotation gpu-memory, from
// the node's labels: it rounds down to hundreds of MiB, and takes 1 TiB and more for bytes. Without the label, KAI
// places no such pod on the node (docs/reference/facts.md#kai-shares).
func KAICardMemory(labels map[string]string) (mib int64, labelled bool) {
	const tib = 1 << 20
	mib, err := strconv.ParseInt(labels[LabelMemory], 10, 64)
	if mib >= tib {
		mib >>= 20
	}
	return mib - mib%100, err == nil
}

// KAIShares reports whether the KAI scheduler gives pods a part of the node's cards. It gives none of a node with MIG:
// with the mixed strategy it places no such pod there, and with the single strategy the pod sees no GPU.
func (n GPUs) KAIShares() bool {
	return n.Kind != gpuinfo.MIG && n.Profile == nil
}
