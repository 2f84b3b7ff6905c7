package gpuinfo

import (
	"regexp"
	"strconv"
	"strings"
)

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
