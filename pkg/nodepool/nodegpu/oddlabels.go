package nodegpu

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// oddLabels are labels with few legal values. A version of tomorrow may have more, and then nobody knows what the node
// hands out.
var oddLabels = []struct {
	key  string
	want []string
	// kinds: without knowing the value nobody knows what is handed out under a plain name.
	kinds bool
}{
	{labelStrategy, []string{"none", "single", "mixed"}, true},
	{labelSharing, []string{"none", "time-slicing", "mps"}, true},
	{labelACKPlacement, []string{string(gpuinfo.ACKBinpack), string(gpuinfo.ACKSpread)}, false},
}

// readOdd recognises nodes whose labels say in words that nobody knows how GPUs are handed out, or how many share one.
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

// oddValues tells labels that are not what their keys promise, and units that cards cannot have.
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
		r.problem(TooManyUnits, fmt.Sprintf("%s %d on %d cards: want a multiple of %d, for cards of a node are alike",
			gpuinfo.AliyunMemory, memory, cards, cards))
	}
}
