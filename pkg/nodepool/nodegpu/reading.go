package nodegpu

import (
	"errors"
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
	// devices are the resources that are handed out as devices, most that the node ever announced of them: a broken one
	// still tells its kind.
	devices map[string]int64
	// unknown: something that speaks of GPUs is announced, and nobody knows what it is.
	unknown bool
	// product is what the model means where MIG is possible.
	product      gpuinfo.Product
	productKnown bool
}

// is sets kind and isolation together.
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

// number reads a label that counts; what is none is a problem.
func (r *reading) number(key string) (int64, bool) {
	text, set := r.node.Labels[key]
	if !set {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		r.problem(LabelUnreadable, key+"="+text+" is no count")
		return 0, false
	}
	if most := mostOf(key); n > most && !slices.Contains(cardCounts, key) {
		r.problem(LabelUnreadable, fmt.Sprintf("%s=%d: want at most %d", key, n, most))
		return 0, false
	}
	return n, true
}

// cards takes a number of cards, and none that no machine has.
func (r *reading) cards(n int64) {
	if n >= 0 && n <= mostCards {
		r.gpus.Cards = &n
	}
}

// memory notes what is behind one unit of a resource.
func (r *reading) memory(resource string, mib int64) {
	if mib <= 0 {
		return
	}
	if r.gpus.MemoryMiB == nil {
		r.gpus.MemoryMiB = map[string]int64{}
	}
	r.gpus.MemoryMiB[resource] = mib
}

// gfdMemory is the label gpu.memory, in MiB. A feature discovery of 2022 wrote bytes; no device has ten million MiB.
func (r *reading) gfdMemory() (int64, bool) {
	const mostMiB = 10_000_000
	n, ok := r.number(labelMemory)
	if n > mostMiB {
		n >>= 20
	}
	return n, ok && n > 0
}

// announced are the device resources with units, healthy or not, sorted.
func (r *reading) announced() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.devices)),
		func(name string) bool { return r.devices[name] == 0 })
}

// mostOf bounds what a label can count: shares of a device are devices themselves.
func mostOf(key string) int64 {
	if key == labelGKEClients || strings.HasSuffix(key, ".replicas") {
		return mostDevices
	}
	return mostAmount
}

func (r *reading) problem(code ProblemCode, message string) {
	if p := (Problem{code, message}); !slices.Contains(r.gpus.Problems, p) {
		r.gpus.Problems = append(r.gpus.Problems, p)
	}
}

func isUnknownGPU(err error) bool { return errors.Is(err, gpuinfo.ErrUnknownResource) }

// mostCards is the most that one machine has. More units under a card's name are shares or instances.
const mostCards = 16
