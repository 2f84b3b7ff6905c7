package landing

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// acceleratorLabel is the label with the accelerator type. Ray takes it and the resource accelerator_type:VALUE from
// the same source.
const acceleratorLabel = "ray.io/accelerator-type"

// acceleratorType returns what new pods announce as their accelerator type: as a resource, and as a label. It returns
// nothing for a group without accelerators.
func acceleratorType(w NewWorker, hosts hostList) []Announced {
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
			return Announced{Why: "the product of the GPUs of " + h.name +
				" is unknown, and Ray detects it on the machine"}
		}
		a.Values, products = append(a.Values, types...), append(products, product)
	}
	a.Values, products = sorted(a.Values), sorted(products)
	a.Present, a.Certain = true, len(a.Values) == 1
	a.Why = "its pods fit on nodes with " + strings.Join(products, " and ")
	if !a.Certain && len(products) == 1 {
		a.Why = products[0] + " has another type before Ray 2.60; set rayVersion"
	}
	return a
}

// gpuTypes returns the types that Ray may announce for the GPUs of a host, and their product.
func (h *host) gpuTypes(pod *PodShape, version string) (types []string, product string) {
	if h.gpus.Product != nil {
		return typesOf(*h.gpus.Product, version), *h.gpus.Product
	}
	for _, key := range productLabels {
		products, all := h.values(pod, key)
		for _, each := range products {
			own := typesOf(each, version)
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
	"gpu.nvidia.com/model", "karpenter.k8s.aws/instance-gpu-name"}

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

// Labels that Ray sets on TPU nodes (docs/reference/facts.md#tpu-slices). All hosts of a slice have one pod type,
// topology and name, and each has its own worker ID.
const (
	TPUPodType   = "ray.io/tpu-pod-type"
	TPUWorkerID  = "ray.io/tpu-worker-id"
	TPUSliceName = "ray.io/tpu-slice-name"
	tpuTopology  = "ray.io/tpu-topology"
)

// TPUHead returns the resource by which programs reserve a whole slice of a pod type. Only the host with worker ID 0
// has it (get_current_node_additional_resources in the same file).
func TPUHead(podType string) string { return "TPU-" + podType + "-head" }

// PodTypeOfTPUHead returns the pod type of a resource that TPUHead returned.
func PodTypeOfTPUHead(head string) string {
	return strings.TrimSuffix(strings.TrimPrefix(head, "TPU-"), "-head")
}

// IsTPUHead reports whether a resource marks the first host of a TPU slice, as TPU-v6e-16-head does.
func IsTPUHead(resource string) bool {
	return strings.HasPrefix(resource, "TPU-") && strings.HasSuffix(resource, "-head")
}

// The node selectors of TPU slices on GKE.
const (
	gkeTopology    = "cloud.google.com/gke-tpu-topology"
	gkeAccelerator = "cloud.google.com/gke-tpu-accelerator"
)

// tpuFamilies are GKE's names of TPUs, what Ray calls them, and how many cores a chip counts for in a slice's name
// (ray autoscaler/_private/kuberay/utils.py, tpu_node_selectors_to_type).
var tpuFamilies = map[string]struct {
	name  string
	cores int
}{
	"tpu-v4-podslice":      {"v4", 2},
	"tpu-v5-lite-device":   {"v5litepod", 1},
	"tpu-v5-lite-podslice": {"v5litepod", 1},
	"tpu-v5p-slice":        {"v5p", 2},
	"tpu-v6e-slice":        {"v6e", 1},
	"tpu7x":                {"v7x", 2},
}

// TPUPodTypeOf returns Ray's name of a slice on the nodes that a selector selects, v4-16 for a tpu-v4-podslice of
// topology 2x2x2, or "" if either is unknown.
func TPUPodTypeOf(selector map[string]string) string {
	return podType(selector[gkeAccelerator], selector[gkeTopology])
}

func podType(accelerator, topology string) string {
	family, known := tpuFamilies[accelerator]
	if !known {
		return ""
	}
	cores := family.cores
	for side := range strings.SplitSeq(topology, "x") {
		n, err := strconv.Atoi(side)
		if err != nil || n < 1 || n > 1<<16 {
			return ""
		}
		cores *= n
	}
	return family.name + "-" + strconv.Itoa(cores)
}

// tpuLabels adds what TPU nodes announce. The worker ID is that of the host in its replica, which the planner knows.
func (l *hostList) tpuLabels(add func(Announced, bool)) {
	add(l.label(tpuTopology, gkeTopology))
	add(l.derived(TPUPodType, "a pod type of GKE", func(h *host) (types []string) {
		accelerators, all := h.values(l.pod, gkeAccelerator)
		topologies, also := h.values(l.pod, gkeTopology)
		if !all || !also {
			return nil
		}
		for _, accelerator := range accelerators {
			for _, topology := range topologies {
				types = append(types, podType(accelerator, topology))
			}
		}
		return types
	}), true)
}

// tpuType derives the accelerator type of TPUs.
func (l *hostList) tpuType() Announced {
	return l.derived("", "a TPU of GKE", func(h *host) (types []string) {
		accelerators, all := h.values(l.pod, gkeAccelerator)
		for _, accelerator := range accelerators {
			if family, known := tpuFamilies[accelerator]; known && all {
				types = append(types, "TPU-"+strings.ToUpper(family.name))
			}
		}
		return types
	})
}

// derived returns what new pods announce under a Ray label whose possible values follow from each host; none, or an
// empty one, means that the host does not say.
func (l *hostList) derived(name, what string, valuesOf func(h *host) []string) Announced {
	a := Announced{Name: name}
	for i := range l.all {
		values := valuesOf(&l.all[i])
		if len(values) == 0 || slices.Contains(values, "") {
			return Announced{Name: name, Why: "Ray detects it on the machine, and nothing shows " + what + " on " +
				l.all[i].name}
		}
		a.Values = append(a.Values, values...)
	}
	a.Values = sorted(a.Values)
	a.Present, a.Certain = true, len(a.Values) == 1
	a.Why = "by the labels of its nodes"
	return a
}
