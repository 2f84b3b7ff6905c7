package raydemand

import (
	"maps"
	"slices"
	"strings"
)

// Names of resources that have a meaning in Ray.
const (
	CPU    = "CPU"
	GPU    = "GPU"
	Memory = "memory" // bytes
	// ImplicitPrefix is the prefix of resources that every node has one unit of, although it does not report them (ray:
	// node:__internal_implicit_resource_*).
	ImplicitPrefix = "node:__internal_implicit_resource_"
)

// Bundle is a set of resource amounts by Ray resource name: what one task, actor or placement-group bundle requests, or
// what one node has. A missing name means zero.
type Bundle map[string]Amount

// Names returns the resource names in byte order.
func (b Bundle) Names() []string { return slices.Sorted(maps.Keys(b)) }

// Clone returns an independent copy of b.
func (b Bundle) Clone() Bundle { return maps.Clone(b) }

// IsZero reports whether the bundle requests nothing: it has no names, or only zero amounts.
func (b Bundle) IsZero() bool {
	for _, amount := range b {
		if amount != 0 {
			return false
		}
	}
	return true
}

// Has returns how much of a resource a node with the resources b offers. Every node offers one unit of each implicit
// resource.
func (b Bundle) Has(name string) Amount {
	if amount, ok := b[name]; ok {
		return amount
	}
	if strings.HasPrefix(name, ImplicitPrefix) {
		return One
	}
	return 0
}

// Fits reports whether b has every amount of want.
func (b Bundle) Fits(want Bundle) bool {
	for name, amount := range want {
		if amount > 0 && b.Has(name) < amount {
			return false
		}
	}
	return true
}

// Take subtracts want in place. The caller checks Fits first.
func (b Bundle) Take(want Bundle) {
	for name, amount := range want {
		if amount != 0 {
			b[name] = b.Has(name) - amount
		}
	}
}

// Add adds more in place, saturating.
func (b Bundle) Add(more Bundle) {
	for name, amount := range more {
		b[name] = b[name].Plus(amount)
	}
}

// Equal reports whether both bundles have the same amounts; a zero amount equals an absent name.
func (b Bundle) Equal(other Bundle) bool {
	for name, amount := range b {
		if other[name] != amount {
			return false
		}
	}
	for name, amount := range other {
		if b[name] != amount {
			return false
		}
	}
	return true
}

// String returns the bundle in a readable form, with names in byte order: {CPU 1, GPU 0.5}.
func (b Bundle) String() string {
	amounts := b.Names()
	for i, name := range amounts {
		amounts[i] = name + " " + b[name].String()
	}
	return "{" + strings.Join(amounts, ", ") + "}"
}

// AddedByRay reports whether Ray adds a resource of this name when a node starts. A group that has had nodes is known
// to have it, and an equal group without nodes is not, so it counts only if some demand asks for it.
func AddedByRay(name string) bool {
	return name == ObjectStoreMemory || strings.HasPrefix(name, "accelerator_type:") ||
		strings.HasPrefix(name, "node:")
}
