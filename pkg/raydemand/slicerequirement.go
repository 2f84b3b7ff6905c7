package raydemand

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// SliceRequirement is what a request asks of the GPUs that it gets, beyond their number: at least so much memory and compute, and how well they
// are kept apart from others' work. What is zero or empty is not asked for. It holds for each GPU, and for the fraction of one where less
// than one is asked for. Ray knows nothing of it: only REST, the annotation resource-requests and snapshots carry one.
type SliceRequirement struct {
	// Memory is in bytes.
	Memory int64
	// ComputeFraction is a part of one physical card's compute, 0 to 1.
	ComputeFraction float64
	// Isolation is hardware, limit or any. Empty is the RayCluster's, or limit where that says nothing: what others oversubscribe is had
	// by asking for it alone.
	Isolation string
}

// The isolations that a wish may ask for.
const (
	IsolationHardware = "hardware"
	IsolationLimit    = "limit"
	IsolationAny      = "any"
)

// MaxSliceMemory bounds a wish for memory: 100 TiB, far more than any card has.
const MaxSliceMemory int64 = 100 << 40

// minComputeFraction is the precision of Ray's amounts. No card is cut as small.
const minComputeFraction = 0.0001

// SliceMemoryWant and its like say what would be right in the fields of a wish.
const (
	SliceWant          = `an object with memory, computeFraction or isolation, such as {"memory": "10Gi"}`
	SliceMemoryWant    = `a Kubernetes quantity such as "10Gi" (1024³) or "10G" (1000³), or whole bytes as a number, from 1 to 100Ti`
	SliceComputeWant   = "a part of one card's compute, from 0.0001 to 1"
	SliceIsolationWant = "hardware, limit or any"
)

// SliceError says what is wrong with a wish: Field is its key, or empty where the whole is no wish; Want is what would be right.
type SliceError struct {
	Field, Value, Want string
}

// Error writes field, value and what would be right.
func (e *SliceError) Error() string {
	return strings.TrimPrefix(fmt.Sprintf("%s: %s: want %s", strings.TrimSuffix("slice."+e.Field, "."), e.Value, e.Want), ": ")
}

// ParseSliceRequirement reads a wish from JSON. Errors are *SliceErrors. A key that is not known, or is there twice, is one: what was meant by it
// would be had by nobody.
func ParseSliceRequirement(text []byte) (*SliceRequirement, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil, &SliceError{Value: shown(text), Want: SliceWant}
	}
	var requirement SliceRequirement
	seen := map[string]bool{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, &SliceError{Value: shown(text), Want: SliceWant}
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, &SliceError{Value: shown(text), Want: SliceWant}
		}
		if seen[name] {
			return nil, &SliceError{name, "it is there twice", "each key once"}
		}
		seen[name] = true
		if err := requirement.read(name, value); err != nil {
			return nil, err
		}
	}
	if requirement == (SliceRequirement{}) {
		return nil, &SliceError{Value: shown(text), Want: SliceWant}
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
		if err := json.Unmarshal(value, &w.ComputeFraction); err != nil || w.ComputeFraction < minComputeFraction || w.ComputeFraction > 1 {
			return refuse(SliceComputeWant)
		}
	case "isolation":
		if err := json.Unmarshal(value, &w.Isolation); err != nil || !validIsolation(w.Isolation) {
			return refuse(SliceIsolationWant)
		}
	default:
		return refuse("one of the keys memory, computeFraction, isolation")
	}
	return nil
}

func validIsolation(text string) bool {
	return text == IsolationHardware || text == IsolationLimit || text == IsolationAny
}

// shown cuts a value for a message.
func shown(value []byte) string {
	const longest = 60
	if len(value) > longest {
		return strings.ToValidUTF8(string(value[:longest]), "") + "…"
	}
	return string(value)
}

// memoryUnits are the suffixes of Kubernetes' quantities that memory is written in.
var memoryUnits = []struct {
	suffix string
	bytes  int64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12},
}

// parseMemory reads a JSON text or number. The error is what would be right.
func parseMemory(value json.RawMessage) (int64, error) {
	text, unit := string(value), int64(1)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(value, &text); err != nil {
			return 0, fmt.Errorf("%s", SliceMemoryWant)
		}
		for _, u := range memoryUnits {
			if number, found := strings.CutSuffix(text, u.suffix); found {
				text, unit = number, u.bytes
				break
			}
		}
		if number, meant := strings.CutSuffix(text, "B"); meant {
			return 0, fmt.Errorf("%s; %s is written without B", SliceMemoryWant, number)
		}
	}
	bytes, ok := timesUnit(text, unit)
	if f, err := strconv.ParseFloat(string(value), 64); err == nil && f != math.Trunc(f) { // bytes as a number are whole
		ok = false
	}
	if !ok || bytes < 1 || bytes > MaxSliceMemory {
		return 0, fmt.Errorf("%s", SliceMemoryWant)
	}
	return bytes, nil
}

// timesUnit multiplies a decimal number with a unit, rounded up to whole bytes as Kubernetes does.
func timesUnit(number string, unit int64) (int64, bool) {
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		high, low := bits.Mul64(uint64(max(whole, 0)), uint64(unit))
		return int64(low), whole >= 0 && high == 0 && low <= math.MaxInt64
	}
	if strings.ContainsAny(number, "xXpP_nN") { // forms of Go's, not of a quantity
		return 0, false
	}
	f, err := strconv.ParseFloat(number, 64)
	bytes := math.Ceil(f * float64(unit))
	return int64(bytes), err == nil && bytes >= 0 && bytes <= float64(MaxSliceMemory)
}

// MemoryText writes bytes as the shortest quantity that is exact: 10Gi, 4864Mi, 1500.
func MemoryText(bytes int64) string {
	for i := len(memoryUnits)/2 - 1; i >= 0; i-- {
		if u := memoryUnits[i]; bytes > 0 && bytes%u.bytes == 0 {
			return strconv.FormatInt(bytes/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// sliceJSON is the form in which a wish is written.
type sliceJSON struct {
	Memory          string  `json:"memory,omitempty"`
	ComputeFraction float64 `json:"computeFraction,omitempty"`
	Isolation       string  `json:"isolation,omitempty"`
}

// MarshalJSON writes memory as a quantity and leaves out what is not asked for.
func (w SliceRequirement) MarshalJSON() ([]byte, error) {
	form := sliceJSON{ComputeFraction: w.ComputeFraction, Isolation: w.Isolation}
	if w.Memory > 0 {
		form.Memory = MemoryText(w.Memory)
	}
	return json.Marshal(form)
}

// UnmarshalJSON reads what ParseSliceRequirement does.
func (w *SliceRequirement) UnmarshalJSON(text []byte) error {
	requirement, err := ParseSliceRequirement(text)
	if err != nil {
		return err
	}
	*w = *requirement
	return nil
}

// Equal reports whether two wishes ask for the same; nil asks for nothing.
func (w *SliceRequirement) Equal(other *SliceRequirement) bool {
	if w == nil || other == nil {
		return w == other
	}
	return *w == *other
}

// String says what is asked for as a person would: "10 GiB, hardware", "0.25 of a card's compute" or "hardware isolation".
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

// gibibytes writes GiB to two decimals, below one MiB.
func gibibytes(bytes int64) string {
	unit, name := float64(1<<30), " GiB"
	if bytes < 1<<30 {
		unit, name = 1<<20, " MiB"
	}
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(float64(bytes)/unit, 'f', 2, 64), "0"), ".") + name
}

// Sliced gives a request with a wish its GPU: without any in its resources one is meant. The bundle is not changed but replaced.
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
