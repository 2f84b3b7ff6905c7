package sharing

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// reading is one node while it is being read.
type reading struct {
	node  NodeObject
	names gpuinfo.Names
	at    time.Time
	gpus  GPUs
	// devices are the resources that are announced as devices, with the highest number that the node ever announced: a
	// broken device still shows its kind.
	devices map[string]int64
	// unregistered: HAMi's scheduler takes no cards from the register of its agent, because it is invalid or names none
	// (HAMi v2.9.0: NvidiaGPUDevices.GetNodeDevices in pkg/device/nvidia/device.go returns an error, for which
	// Scheduler.register in pkg/scheduler/scheduler.go skips the node). Cards that a running scheduler registered
	// before that stay in its memory, which nothing shows.
	unregistered bool
	// unknown: the node announces a resource that looks like GPUs and is in no table.
	unknown bool
	// supplied: ResourceSlices offer GPUs on the node, those of drivers whose attributes are not known too.
	supplied bool
	// report is what Heliostat's agent wrote, without cards if that does not count; nil until it is needed.
	report *AgentReport
	// product is the entry of the product table, for models that support MIG.
	product      gpuinfo.Product
	productKnown bool
}

// is sets kind and isolation.
func (r *reading) is(kind gpuinfo.Kind, isolation gpuinfo.Isolation) bool {
	r.gpus.Kind, r.gpus.Isolation = kind, isolation
	return true
}

// label returns the first of the labels that is set and not empty.
func (r *reading) label(keys ...string) string {
	for _, key := range keys {
		if value := r.node.Labels[key]; value != "" {
			return value
		}
	}
	return ""
}

// number reads a label that counts, and reports an invalid value as a problem.
func (r *reading) number(key string) (int64, bool) {
	text, set := r.node.Labels[key]
	if !set {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		r.problem(LabelUnreadable, key+"="+text+" is not a count")
		return 0, false
	}
	if most := mostOf(key); n > most && !slices.Contains(cardCounts, key) {
		r.problem(LabelUnreadable, fmt.Sprintf("%s=%d: want at most %d", key, n, most))
		return 0, false
	}
	return n, true
}

// memory sets what is behind one unit of a resource.
func (r *reading) memory(resource string, mib int64) {
	if mib <= 0 {
		return
	}
	if r.gpus.MemoryMiB == nil {
		r.gpus.MemoryMiB = map[string]int64{}
	}
	r.gpus.MemoryMiB[resource] = mib
}

// announced returns the device resources with units, healthy or not, sorted.
func (r *reading) announced() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.devices)),
		func(name string) bool { return r.devices[name] == 0 })
}

// mostOf bounds what a label can count: shares of a device are devices too.
func mostOf(key string) int64 {
	if key == labelGKEClients || strings.HasSuffix(key, ".replicas") {
		return mostDevices
	}
	return mostAmount
}

func (r *reading) problem(code ProblemCode, message string) {
	if p := (Problem{Code: code, Message: message}); !slices.Contains(r.gpus.Problems, p) {
		r.gpus.Problems = append(r.gpus.Problems, p)
	}
}
