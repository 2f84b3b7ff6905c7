package sharing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readProduct finds the model. Labels read from the driver take precedence over labels that a cloud chose.
func (r *reading) readProduct() {
	model := r.label(LabelProduct)
	if cut := strings.Index(model, "-MIG-"); cut >= 0 {
		model = model[:cut]
	}
	model = strings.TrimSuffix(model, "-SHARED")
	if model == "" {
		model = registeredModel(r.node)
	}
	if model == "" {
		model = r.label(append([]string{LabelACKName, "gpu.nvidia.com/model", "karpenter.k8s.aws/instance-gpu-name",
			"eks.amazonaws.com/instance-gpu-name", "karpenter.azure.com/sku-gpu-name", LabelGKEAccelerator},
			labelsAMDProduct...)...)
	}
	if model != "" {
		r.gpus.Product = &model
		r.product, r.productKnown = gpuinfo.ProductOf(model)
	}
}

// readCards reads the number of cards, and the memory of one, from labels.
func (r *reading) readCards() {
	for _, key := range cardCounts {
		if key == labelCount && strings.Contains(r.label(LabelProduct), "-MIG-") {
			continue // there it counts MIG devices
		}
		switch n, ok := r.number(key); {
		case !ok || n == 0:
		case n > mostCards:
			r.problem(LabelUnreadable, fmt.Sprintf("%s=%d: want at most %d cards", key, n, mostCards))
		default:
			r.cards(n)
		}
		if r.gpus.Cards != nil {
			break
		}
	}
	if n := r.gpus.Units[gpuinfo.AliyunCount]; r.gpus.Cards == nil && n > 0 {
		r.cards(n)
	}
	if r.gpus.Cards == nil {
		r.intelCards()
	}
	if memory, ok := memoryText(r.label(labelACKMemory)); ok {
		r.gpus.CardMemoryMiB = &memory
	}
	for _, provider := range []string{"karpenter.k8s.aws", "eks.amazonaws.com"} {
		if memory, ok := r.number(provider + "/instance-gpu-memory"); ok && memory > 0 {
			r.gpus.CardMemoryMiB = &memory
		}
	}
}

// instanceTypes are the labels that name the instance type of a node, the current one first.
var instanceTypes = []string{"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"}

// cardCounts are the labels that count physical cards.
var cardCounts = []string{
	labelCount, "aliyun.accelerator/nvidia_count", "karpenter.k8s.aws/instance-gpu-count",
	"eks.amazonaws.com/instance-gpu-count", "karpenter.azure.com/sku-gpu-count",
	"karpenter.k8s.gcp/instance-gpu-count", "cloud.google.com/gke-accelerator-count",
}

// cards sets the number of cards, unless no machine has that many.
func (r *reading) cards(n int64) {
	if n >= 0 && n <= mostCards {
		r.gpus.Cards = &n
	}
}

// mostCards is the highest number of cards in one machine. More units under a card's name are shares or instances.
const mostCards = 16

// cardCount returns how many cards the node has by its labels, by Heliostat's agent, or by what the cloud documents
// about the instance type. source says which of the latter two.
func (r *reading) cardCount() (cards int64, source string, known bool) {
	if r.gpus.Cards != nil {
		return *r.gpus.Cards, "", true
	}
	if report, ok := r.agentReport(); ok {
		return int64(len(report.Cards)), "the driver's count", true
	}
	instanceType := r.label(instanceTypes...)
	if cards, _ := gpuinfo.MachineOf(instanceType); cards > 0 {
		return cards, instanceType, true
	}
	return 0, "", false
}

// countedCards returns a number of cards with its source, if that is not a label.
func countedCards(cards int64, source string) string {
	text := fmt.Sprintf("%d cards", cards)
	if cards == 1 {
		text = "1 card"
	}
	if source != "" {
		text += " (" + source + ")"
	}
	return text
}

// intelCards adds up feature discovery's counts by PCI device.
func (r *reading) intelCards() {
	var sum int64
	for _, key := range slices.Sorted(maps.Keys(r.node.Labels)) {
		if strings.HasPrefix(key, "gpu.intel.com/device-id.") && strings.HasSuffix(key, ".count") {
			n, _ := r.number(key)
			sum += n
		}
	}
	if sum > 0 {
		r.cards(sum)
	}
}
