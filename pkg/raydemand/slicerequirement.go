package raydemand

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// SliceRequirement is what a request requires of each of its GPUs, or of the fraction of one GPU that it requests:
// memory, compute, and isolation from other work. Fields that are zero or empty require nothing. Ray does not have this
// concept: only REST, the annotation resource-requests and snapshots carry it.
type SliceRequirement struct {
	// Memory is in bytes.
	Memory int64
	// ComputeFraction is a part of one physical card's compute, 0 to 1.
	ComputeFraction float64
	// Isolation is hardware, limit or any. If it is empty, the RayCluster's setting applies, or limit if that is not
	// set: work gets oversubscribed devices only if it asks for them.
	Isolation string
}

// The isolations that a request can require.
const (
	IsolationHardware = "hardware"
	IsolationLimit    = "limit"
	IsolationAny      = "any"
)

// MaxSliceMemory is the largest memory that a request can require: 100 TiB, far more than any card has.
const MaxSliceMemory int64 = 100 << 40

// minComputeFraction is the precision of Ray's amounts. No card is divided into parts that small.
const minComputeFraction = 0.0001

// SliceMemoryWant and the other constants describe valid values of a requirement's fields in error messages.
const (
	SliceWant       = `an object with memory, computeFraction or isolation, such as {"memory": "10Gi"}`
	SliceMemoryWant = `a Kubernetes quantity such as "10Gi" (1024³) or "10G" (1000³), ` +
		"or whole bytes as a number, from 1 to 100Ti"
	SliceComputeWant   = "a part of one card's compute, from 0.0001 to 1"
	SliceIsolationWant = "hardware, limit or any"
)

// SliceError reports an invalid requirement. Field is its key, or empty if the value as a whole is invalid; Want
// describes valid values.
type SliceError struct {
	Field, Value, Want string
}

// Error returns the field, the value and what is valid.
func (e *SliceError) Error() string {
	field := strings.TrimSuffix("slice."+e.Field, ".")
	return fmt.Sprintf("%s: %s: want %s", field, e.Value, e.Want)
}

// ParseSliceRequirement reads a requirement from JSON. It returns *SliceErrors. An unknown key is an error, because
// nothing would honor it.
func ParseSliceRequirement(text []byte) (*SliceRequirement, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || len(fields) == 0 {
		return nil, &SliceError{Value: shown(text), Want: SliceWant}
	}
	var requirement SliceRequirement
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := requirement.read(name, fields[name]); err != nil {
			return nil, err
		}
	}
	return &requirement, nil
}

func (w *SliceRequirement) read(name string, value json.RawMessage) error {
	refuse := func(want string) error { return &SliceError{name, shown(value), want} }
	switch name {
	case "memory":
		memory, err := parseMemory(value)
		if err != nil {
			return refuse(err.Error())
		}
		w.Memory = memory
	case "computeFraction":
		err := json.Unmarshal(value, &w.ComputeFraction)
		if err != nil || w.ComputeFraction < minComputeFraction || w.ComputeFraction > 1 {
			return refuse(SliceComputeWant)
		}
	case "isolation":
		valid := []string{IsolationHardware, IsolationLimit, IsolationAny}
		if err := json.Unmarshal(value, &w.Isolation); err != nil || !slices.Contains(valid, w.Isolation) {
			return refuse(SliceIsolationWant)
		}
	default:
		return refuse("one of the keys memory, computeFraction, isolation")
	}
	return nil
}

// shown shortens a value for a message.
func shown(value []byte) string {
	const longest = 60
	if len(value) > longest {
		return strings.ToValidUTF8(string(value[:longest]), "") + "…"
	}
	return string(value)
}

// memoryUnits are the suffixes of Kubernetes quantities that are accepted for memory.
var memoryUnits = []struct {
	suffix string
	bytes  int64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12},
}

// parseMemory reads a JSON string or number, and rounds up to whole bytes, as Kubernetes does; bytes as a number are
// whole. The error describes valid values.
func parseMemory(value json.RawMessage) (int64, error) {
	text, unit, quoted := string(value), int64(1), strings.HasPrefix(string(value), `"`)
	if quoted {
		if err := json.Unmarshal(value, &text); err != nil {
			return 0, errors.New(SliceMemoryWant)
		}
		for _, u := range memoryUnits {
			if number, found := strings.CutSuffix(text, u.suffix); found {
				text, unit = number, u.bytes
				break
			}
		}
		if number, meant := strings.CutSuffix(text, "B"); meant {
			return 0, fmt.Errorf("%s; write %s without B", SliceMemoryWant, number)
		}
	}
	number, err := strconv.ParseFloat(text, 64)
	bytes := math.Ceil(number * float64(unit))
	foreign := strings.ContainsAny(text, "xXpP_nN") // these forms are valid in Go but not in a quantity
	if err != nil || foreign || !quoted && bytes != number || bytes < 1 || bytes > float64(MaxSliceMemory) {
		return 0, errors.New(SliceMemoryWant)
	}
	return int64(bytes), nil
}

// MemoryText returns the shortest exact quantity: 10Gi, 4864Mi, 1500.
func MemoryText(bytes int64) string {
	for i := len(memoryUnits)/2 - 1; i >= 0; i-- {
		if u := memoryUnits[i]; bytes > 0 && bytes%u.bytes == 0 {
			return strconv.FormatInt(bytes/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// sliceJSON is the JSON form of a requirement.
type sliceJSON struct {
	Memory          string  `json:"memory,omitempty"`
	ComputeFraction float64 `json:"computeFraction,omitempty"`
	Isolation       string  `json:"isolation,omitempty"`
}

// MarshalJSON writes memory as a quantity and leaves out fields that require nothing.
func (w SliceRequirement) MarshalJSON() ([]byte, error) {
	form := sliceJSON{ComputeFraction: w.ComputeFraction, Isolation: w.Isolation}
	if w.Memory > 0 {
		form.Memory = MemoryText(w.Memory)
	}
	return json.Marshal(form)
}

// UnmarshalJSON reads the form that ParseSliceRequirement accepts.
func (w *SliceRequirement) UnmarshalJSON(text []byte) error {
	requirement, err := ParseSliceRequirement(text)
	if err != nil {
		return err
	}
	*w = *requirement
	return nil
}

// Equal reports whether two requirements are equal; nil requires nothing.
func (w *SliceRequirement) Equal(other *SliceRequirement) bool {
	if w == nil || other == nil {
		return w == other
	}
	return *w == *other
}

// String returns the requirement in a readable form: "10 GiB, hardware", "0.25 of a card's compute" or "hardware
// isolation".
func (w *SliceRequirement) String() string {
	var parts []string
	if w.Memory > 0 {
		parts = append(parts, gibibytes(w.Memory))
	}
	if w.ComputeFraction > 0 {
		parts = append(parts, strconv.FormatFloat(w.ComputeFraction, 'f', -1, 64)+" of a card's compute")
	}
	switch {
	case w.Isolation == "":
	case len(parts) == 0:
		parts = append(parts, w.Isolation+" isolation")
	default:
		parts = append(parts, w.Isolation)
	}
	return strings.Join(parts, ", ")
}

// gibibytes returns GiB to two decimals, or MiB below one GiB.
func gibibytes(bytes int64) string {
	unit, name := float64(1<<30), " GiB"
	if bytes < 1<<30 {
		unit, name = 1<<20, " MiB"
	}
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(float64(bytes)/unit, 'f', 2, 64), "0"), ".") + name
}

// Sliced returns the request with one GPU if it has a slice requirement and its resources name none. It replaces the
// bundle and does not change it.
func (r Request) Sliced() Request {
	if r.Slice != nil && r.Bundle[GPU] <= 0 {
		bundle := r.Bundle.Clone()
		if bundle == nil {
			bundle = Bundle{}
		}
		bundle[GPU] = One
		r.Bundle = bundle
	}
	return r
}
