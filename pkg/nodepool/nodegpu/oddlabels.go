package nodegpu

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// oddLabels are labels with few valid values. A later version may have more; then it is unknown what the node offers.
var oddLabels = []struct {
	key  string
	want []string
	// kinds: an unknown value means that it is unknown what a plain resource name offers.
	kinds bool
}{
	{labelStrategy, []string{"none", "single", "mixed"}, true},
	{labelSharing, []string{"none", "time-slicing", "mps"}, true},
	{labelACKPlacement, []string{string(gpuinfo.ACKBinpack), string(gpuinfo.ACKSpread)}, false},
}

// readOdd recognizes nodes with label values that are unknown, so that it is unknown how GPUs are shared, or among how
// many.
func (r *reading) readOdd() bool {
	odd := r.label(labelReplicas) != "" && !r.readable(labelReplicas)
	for _, label := range oddLabels {
		if value := r.label(label.key); value != "" && !slices.Contains(label.want, value) && label.kinds {
			odd = true
		}
	}
	return odd && r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
}

func (r *reading) readable(key string) bool {
	_, ok := r.number(key)
	return ok
}

// oddValues reports invalid labels, and numbers of units that the cards cannot have.
func (r *reading) oddValues() {
	for _, label := range oddLabels {
		if value := r.label(label.key); value != "" && !slices.Contains(label.want, value) {
			last := len(label.want) - 1
			r.problem(LabelUnreadable, fmt.Sprintf("%s=%s: want %s or %s", label.key, value,
				strings.Join(label.want[:last], ", "), label.want[last]))
		}
	}
	if text := r.label(labelACKMemory); text != "" {
		if _, ok := memoryText(text); !ok {
			r.problem(LabelUnreadable, labelACKMemory+"="+text+": want the memory of a card, such as 23028MiB")
		}
	}
	if r.gpus.Kind != gpuinfo.GPUMemory || r.gpus.Cards == nil || *r.gpus.Cards == 0 {
		return
	}
	cards := *r.gpus.Cards
	if cores := r.gpus.Units[gpuinfo.AliyunCores]; cores > 100*cards {
		r.problem(TooManyUnits, fmt.Sprintf("%s %d on %d cards: want %d", gpuinfo.AliyunCores, cores, cards, 100*cards))
	}
	if memory := r.gpus.Units[gpuinfo.AliyunMemory]; memory%cards != 0 {
		r.problem(TooManyUnits, fmt.Sprintf("%s %d on %d cards: want a multiple of %d: a node's cards are alike",
			gpuinfo.AliyunMemory, memory, cards, cards))
	}
}
