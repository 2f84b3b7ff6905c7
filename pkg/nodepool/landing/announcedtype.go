package landing

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// acceleratorLabel is the label with the accelerator type. Ray takes it and the resource accelerator_type:VALUE from
// the same source.
const acceleratorLabel = "ray.io/accelerator-type"

// acceleratorType returns what new pods announce as their accelerator type: as a resource, and as a label. It returns
// nothing for a group without accelerators.
func acceleratorType(reader sharing.Reader, w NewWorker, hosts hostList) []Announced {
	kind := ""
	for _, name := range w.Resources.Names() {
		if raydemand.IsUnitInstance(name) && w.Resources[name] > 0 {
			kind = name
		}
	}
	if kind == "" {
		return nil
	}
	a := Announced{}
	switch {
	case kind == "neuron_cores":
		a.Values, a.Certain, a.Why = []string{neuronCore}, true, "of each node with neuron_cores"
	case kind == "TPU":
		a = hosts.tpuType()
	case kind != raydemand.GPU:
		a.Why = "Ray detects the type of " + kind + " on the machine"
	default:
		a = hosts.gpuType(w.RayVersion)
	}
	resource, label := a, a
	resource.Name, label.Name = raydemand.AcceleratorTypePrefix, acceleratorLabel
	return []Announced{resource, label}
}

// neuronCore is the type of each node with neuron_cores (ray/_private/accelerators/neuron.py).
const neuronCore = "aws-neuron-core"

// gpuType derives the type of GPUs from the products of all hosts.
func (l *hostList) gpuType(version string) Announced {
	a, products := Announced{}, []string{}
	for i := range l.all {
		h := &l.all[i]
		types, product := h.gpuTypes(l.pod, version)
		if len(types) == 0 {
			return Announced{
				Why: fmt.Sprintf("the product of the GPUs of %s is unknown, and Ray detects it on the machine",
					h.name),
			}
		}
		a.Values = append(a.Values, types...)
		if !slices.Contains(products, product) {
			products = append(products, product)
		}
	}
	slices.Sort(a.Values)
	a.Values = slices.Compact(a.Values)
	slices.Sort(products)
	a.Present, a.Certain = true, len(a.Values) == 1
	a.Why = "its pods fit on nodes with " + strings.Join(products, " and ")
	if !a.Certain && len(products) == 1 {
		a.Why = products[0] + " has another type before Ray 2.60; set rayVersion"
	}
	return a
}

// gpuTypes returns the types that Ray may announce for the GPUs of a host, and their product.
func (h *host) gpuTypes(pod *PodShape, version string) (types []string, product string) {
	if id := h.labels[amdDevice]; id != "" {
		if known := amdTypes[strings.ToLower(strings.TrimPrefix(id, "0x"))]; known != "" {
			return []string{known}, known
		}
		return nil, ""
	}
	if h.gpus.Product != nil {
		return typesOf(*h.gpus.Product, version), *h.gpus.Product
	}
	for _, key := range productLabels {
		products, all := h.values(pod, key)
		for _, each := range products {
			own := typesOf(productBy(key, each), version)
			if all = all && len(own) > 0; !all {
				break
			}
			types = append(types, own...)
		}
		if all && len(products) > 0 {
			return types, strings.Join(products, " or ")
		}
		types = nil
	}
	return nil, ""
}

// productLabels name the model of a node's GPUs. A template or a pod may list several values of one.
var productLabels = []string{sharing.LabelProduct, sharing.LabelACKName, sharing.LabelGKEAccelerator,
	"gpu.nvidia.com/model", "karpenter.k8s.aws/instance-gpu-name", "node.kubernetes.io/instance-type",
	"beta.kubernetes.io/instance-type", "karpenter.k8s.aws/instance-family"}

// productBy returns the product that a label's value stands for: of an instance type, that of its machines.
func productBy(key, value string) string {
	if !strings.HasSuffix(key, "/instance-type") && !strings.HasSuffix(key, "/instance-family") {
		return value
	}
	return gpuinfo.ProductOfInstance(value)
}

// The two patterns by which Ray takes the type from the driver's name of a card
// (docs/reference/facts.md#accelerator-type): the first one since ray#64428, which 2.60.0 has and 2.52.0 has not.
var (
	namePattern  = regexp.MustCompile(`^\w+\s+((?:[A-Z]+\s+)*[A-Z0-9]*\d[A-Z0-9]*)`)
	olderPattern = regexp.MustCompile(`^\w+\s+([A-Z0-9]+)`)
)

// Releases of Ray that are known to use one pattern: the newest one with the older, and the oldest one with the newer.
const (
	lastOlder  = 52
	firstNewer = 60
)

// typesOf returns the types that Ray may announce for an NVIDIA card whose product a node names so, in the forms of
// feature discovery, of clouds and of Karpenter. It returns several if they depend on Ray's version and the version is
// not known, and none if the name is not of an NVIDIA card.
func typesOf(product, version string) []string {
	name := driverName(product)
	if name == "" {
		return nil
	}
	var types []string
	minor := minorOf(version)
	if minor == 0 || minor > lastOlder {
		types = append(types, newerType(name))
	}
	if minor < firstNewer {
		if match := olderPattern.FindStringSubmatch(name); match != nil && !slices.Contains(types, match[1]) {
			types = append(types, match[1])
		}
	}
	return types
}

func newerType(name string) string {
	if match := namePattern.FindStringSubmatch(name); match != nil && len(match[1]) > 1 {
		return strings.ReplaceAll(match[1], " ", "-")
	}
	return strings.ReplaceAll(strings.TrimPrefix(name, "NVIDIA "), " ", "-")
}

// minorOf returns 60 for 2.60.1, and 0 if the text names no release of Ray 2.
func minorOf(version string) int {
	major, rest, _ := strings.Cut(version, ".")
	text, _, _ := strings.Cut(rest, ".")
	if minor, err := strconv.Atoi(text); err == nil && major == "2" {
		return minor
	}
	return 0
}

// driverBrands begin the names that NVIDIA's driver gives to cards.
var driverBrands = []string{"NVIDIA", "Tesla", "Quadro", "GRID", "GeForce", "TITAN"}

// driverName restores the driver's name of a card. Feature discovery writes it with hyphens for spaces. Hyphens of the
// name itself stand behind the type, so they do not matter. Clouds write the model alone, or in lower case.
func driverName(product string) string {
	words := strings.FieldsFunc(product, func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
	if len(words) == 0 {
		return ""
	}
	if len(words) > 1 && slices.Contains(driverBrands, words[0]) && !slices.Contains(words, "nvidia") {
		return strings.Join(words, " ")
	}
	model := []string{"NVIDIA"}
	for _, word := range words {
		switch upper := strings.ToUpper(word); upper {
		case "NVIDIA", "TESLA", "HGX", "DGX":
		case "AMD", "RADEON", "INSTINCT", "INTEL", "GAUDI":
			return ""
		default:
			model = append(model, upper)
		}
	}
	if len(model) == 1 || !strings.ContainsAny(strings.Join(model, ""), "0123456789") {
		return ""
	}
	return strings.Join(model, " ")
}

// amdDevice is the label of AMD's node labeller with the PCI device id.
const amdDevice = "amd.com/gpu.device-id"

// amdTypes are Ray's types of AMD cards by PCI device id (ray/_private/accelerators/amd_gpu.py, amd_product_dict).
var amdTypes = map[string]string{
	"66a1": "AMD-Instinct-MI50", "738c": "AMD-Instinct-MI100", "7408": "AMD-Instinct-MI250X",
	"740c": "AMD-Instinct-MI250X-MI250", "740f": "AMD-Instinct-MI210", "74a0": "AMD-Instinct-MI300A",
	"74a1": "AMD-Instinct-MI300X-OAM", "74a2": "AMD-Instinct-MI308X-OAM", "74a9": "AMD-Instinct-MI300X-HF",
	"74a5": "AMD-Instinct-MI325X-OAM", "75a0": "AMD-Instinct-MI350X-OAM", "75a3": "AMD-Instinct-MI355X-OAM",
}
