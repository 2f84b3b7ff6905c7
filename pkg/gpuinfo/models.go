package gpuinfo

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// models maps the words of a card's name to a product, as NVIDIA's driver, feature discovery, GKE and Karpenter write
// it. The first matching row applies. There is no row for a name that several products share (A100 alone, H100 alone).
var models = []struct {
	words, without []string
	product        string
	source         string
}{
	{[]string{"A30"}, nil, "A30", "driver: NVIDIA A30"},
	{[]string{"A100", "40GB"}, nil, "A100 40GB", "driver: NVIDIA A100-SXM4-40GB, NVIDIA A100-PCIE-40GB"},
	{[]string{"A100", "80GB"}, nil, "A100 80GB",
		"driver: NVIDIA A100 80GB PCIe, NVIDIA A100-SXM4-80GB; GKE: nvidia-a100-80gb"},
	{[]string{"TESLA", "A100"}, nil, "A100 40GB", "GKE: nvidia-tesla-a100 is the card with 40 GB"},
	{[]string{"H100", "NVL"}, nil, "H100 94GB", "driver: NVIDIA H100 NVL"},
	{[]string{"H100", "94GB"}, nil, "H100 94GB", "MUG: H100 94GB"},
	{[]string{"H100", "96GB"}, nil, "H100 96GB", "MUG: H100 96GB"},
	{[]string{"H100", "80GB"}, nil, "H100 80GB",
		"driver: NVIDIA H100 80GB HBM3; GKE: nvidia-h100-80gb, nvidia-h100-mega-80gb"},
	{[]string{"H100", "PCIE"}, []string{"94GB", "96GB"}, "H100 80GB", "driver: NVIDIA H100 PCIe"},
	{[]string{"GH200", "480GB"}, nil, "H100 96GB",
		"driver: NVIDIA GH200 480GB, named by the memory of its CPU; MUG lists it as H100 96GB"},
	{[]string{"GH200", "144G"}, nil, "GH200 144GB", "driver: NVIDIA GH200 144G HBM3e"},
	{[]string{"H20", "3E"}, nil, "H20 141GB", "driver: NVIDIA H20-3e"},
	{[]string{"H20"}, []string{"141GB"}, "H20 96GB", "driver: NVIDIA H20"},
	{[]string{"H200"}, nil, "H200", "driver: NVIDIA H200, NVIDIA H200 NVL; GKE: nvidia-h200-141gb"},
	{[]string{"B200"}, nil, "B200", "driver: NVIDIA B200"},
	{[]string{"GB200"}, nil, "GB200", "driver: NVIDIA GB200"},
	{[]string{"B300"}, nil, "B300", "mig-parted"},
	{[]string{"GB300"}, nil, "GB300", "mig-parted"},
	{[]string{"RTX", "PRO", "6000"}, nil, "RTX PRO 6000", "driver: NVIDIA RTX PRO 6000 Blackwell Server Edition"},
	{[]string{"RTX", "PRO", "5000"}, []string{"72GB"}, "RTX PRO 5000", "MUG: RTX PRO 5000 48GB"},
	{[]string{"RTX", "PRO", "4500"}, nil, "RTX PRO 4500", "MUG: RTX PRO 4500"},
}

// ProductOf returns the product for a model as labels, annotations or NVML write it: in upper or lower case, with
// spaces, hyphens or underscores. It returns false for cards without MIG, and for names that several products share.
// All callers share the returned product and must not change it.
func ProductOf(model string) (Product, bool) {
	words := wordsOf(model)
	has := func(word string) bool { return slices.Contains(words, word) }
	for _, row := range models {
		if !slices.ContainsFunc(row.words, func(word string) bool { return !has(word) }) &&
			!slices.ContainsFunc(row.without, has) {
			return ProductNamed(row.product)
		}
	}
	return Product{}, false
}

// wordsOf returns the words of a model's name in upper case.
func wordsOf(model string) []string {
	return strings.FieldsFunc(strings.ToUpper(model), func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
}

// modelMemory is the nominal memory in GB of models without MIG that do not name it, as words of the driver's name
// (NVIDIA, data sheets). A model that exists in several sizes has no row.
var modelMemory = map[string]MiB{
	"T4": 16, "T4G": 16, "P4": 8, "L4": 24, "A10": 24, "A10G": 24, "A10M": 24, "A16": 16, "A2": 16, "A40": 48,
	"L20": 48, "L40": 48, "L40S": 48, "A6000": 48,
}

// namedMemory matches the memory in a model's name, such as 32GB in Tesla V100-SXM2-32GB.
var namedMemory = regexp.MustCompile(`(?:^|[-_ ])(\d{1,3})GB(?:$|[-_ ])`)

// MemoryOf returns the nominal memory of a card by its model, of which the driver reports the same or a little less:
// that of the product, or what the name says; 0 if neither shows it.
func MemoryOf(model string) MiB {
	if product, known := ProductOf(model); known {
		return MiB(product.GB) * 1024
	}
	if match := namedMemory.FindStringSubmatch(strings.ToUpper(model)); match != nil {
		gb, _ := strconv.Atoi(match[1])
		return MiB(gb) * 1024
	}
	for _, word := range wordsOf(model) {
		if gb, known := modelMemory[word]; known {
			return gb * 1024
		}
	}
	return 0
}
