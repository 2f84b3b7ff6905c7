package gpuinfo

import (
	"regexp"
	"strings"
)

// instanceFamilies are the models of the GPUs in families of instance types, as clouds document them (AWS: Accelerated
// computing instances; Google Cloud: GPU machine types).
var instanceFamilies = map[string]string{
	"g4dn": "Tesla-T4", "g5": "NVIDIA-A10G", "g5g": "NVIDIA-T4G", "g6": "NVIDIA-L4", "gr6": "NVIDIA-L4",
	"g6e": "NVIDIA-L40S", "p2": "Tesla-K80", "p3": "Tesla-V100", "p3dn": "Tesla-V100", "p4d": "NVIDIA-A100",
	"p4de": "NVIDIA-A100", "p5": "NVIDIA-H100", "p5e": "NVIDIA-H200", "p5en": "NVIDIA-H200", "p6-b200": "NVIDIA-B200",
	"p6-b300": "NVIDIA-B300", "p6e-gb200": "NVIDIA-GB200",

	"a2-highgpu": "NVIDIA-A100", "a2-megagpu": "NVIDIA-A100", "a2-ultragpu": "NVIDIA-A100",
	"a3-highgpu": "NVIDIA-H100", "a3-megagpu": "NVIDIA-H100", "a3-edgegpu": "NVIDIA-H100",
	"a3-ultragpu": "NVIDIA-H200", "a4-highgpu": "NVIDIA-B200", "a4x-highgpu": "NVIDIA-GB200",
	"g2-standard": "NVIDIA-L4",
}

// azureModel finds the model in the names of Azure's sizes, such as Standard_ND96isr_H100_v5.
var azureModel = regexp.MustCompile(`^Standard_N[CDV]\w*_(T4|A10|A100|H100|H200|GB200|GB300)_(?:NC_)?v\d+$`)

// ProductOfInstance returns the model of the GPUs of an instance type or of its family, in the form of feature
// discovery without the card's size, or "" if it is not known.
func ProductOfInstance(name string) string {
	if match := azureModel.FindStringSubmatch(name); match != nil {
		return "NVIDIA-" + match[1]
	}
	if family, _, dotted := strings.Cut(name, "."); dotted {
		return instanceFamilies[family]
	}
	if product, family := instanceFamilies[name]; family {
		return product
	}
	if at := strings.LastIndexByte(name, '-'); at > 0 {
		return instanceFamilies[name[:at]]
	}
	return ""
}
