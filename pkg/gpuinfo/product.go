// Package gpuinfo describes GPUs: the products, the MIG profiles and the legal placements of their instances, the names
// under which Kubernetes announces GPUs and shares of GPUs, and what clouds document about those names. It contains
// tables and arithmetic, with one table for each kind of fact and a source for each row. It must not query a machine,
// and it must not guess: a value that no source documents is unknown, not zero.
//
// Short names of sources: MUG is NVIDIA's MIG User Guide ("Supported MIG Profiles"), lgipp is the output of `nvidia-smi
// mig -lgipp` on real cards, mig-parted is its default configuration, NDP is the source code of NVIDIA's device plugin
// with its feature discovery, AKS and ACK are the documentation of those clouds.
package gpuinfo

import (
	"slices"
	"strings"
	"sync"
)

// MiB is an amount of memory in units of 1024 x 1024 bytes, as nvidia-smi and the node labels use.
type MiB int64

// Product is a GPU that supports MIG.
type Product struct {
	// Name is NVIDIA's name, with the memory where several products have the same name: A100 40GB.
	Name string
	// GB is the nominal memory of a whole card. The actual memory is a little less than GB x 1024 MiB, never more.
	GB int
	// Units is the length of the memory axis for the placement of instances. Slices is the number of compute slices of
	// the card.
	Units, Slices int
	// Profiles are the profiles of its instances, the largest first.
	Profiles []Profile
}

// LargestInstance returns the memory of an instance that has the whole card; 0 if no source documents it.
func (p Product) LargestInstance() MiB {
	for _, profile := range p.Profiles {
		if profile.Plain() && profile.Size == p.Units && profile.Slices == p.Slices {
			return profile.Memory
		}
	}
	return 0
}

// Profile is one kind of MIG instance of a product.
type Profile struct {
	// Name is the name in the format of nvidia-smi: 1g.10gb+me.
	Name string
	// Slices is the number of compute slices.
	Slices int
	// Memory is the memory of an instance on a real card; 0 if no source documents it. It differs by a few percent
	// between drivers, so values that a node reports for its own instances take precedence.
	Memory MiB
	// Size is in units of the memory axis. Starts are the units at which an instance can begin.
	Size   int
	Starts []int
	// Max is the maximum number of instances on one card.
	Max int
	// media is true if the instance has the engines (JPEG, OFA, extra decoders) that only one instance of a card can
	// have.
	media bool
}

// Plain reports whether the name has only slices and memory, without attributes.
func (p Profile) Plain() bool { return !strings.ContainsAny(p.Name, "+-") }

// Profile returns the profile with this name, in either spelling.
func (p Product) Profile(name string) (Profile, bool) {
	if parsed, err := ParseProfile(name); err == nil {
		name = parsed.String()
	}
	for _, profile := range p.Profiles {
		if profile.Name == name {
			return profile, true
		}
	}
	return Profile{}, false
}

// ProfileNames lists the names of the product's profiles, the largest first.
func (p Product) ProfileNames() string {
	names := make([]string, len(p.Profiles))
	for i := range p.Profiles {
		names[i] = p.Profiles[i].Name
	}
	return strings.Join(names, ", ")
}

// Products returns all products, in the order of the table. All callers share them and must not change them.
func Products() []Product { return assembled() }

// ProductNamed returns the product with this Name. All callers share it and must not change it.
func ProductNamed(name string) (Product, bool) {
	for _, product := range assembled() {
		if product.Name == name {
			return product, true
		}
	}
	return Product{}, false
}

// PerCard returns the maximum number of instances of a profile on one card, if all known products with the profile
// agree. For 1g.18gb it returns 7. For 1g.10gb it returns nothing, because an A100 holds 4 or 7.
func PerCard(profile string) (int, bool) {
	most := 0
	for _, product := range assembled() {
		switch p, has := product.Profile(profile); {
		case !has:
		case most != 0 && most != p.Max:
			return 0, false
		default:
			most = p.Max
		}
	}
	return most, most > 0
}

// assembled joins the table of products with the boards, once.
var assembled = sync.OnceValue(func() []Product {
	products := make([]Product, 0, len(productTable))
	for _, row := range productTable {
		product := Product{Name: row.name, GB: row.gb, Units: row.board.units, Slices: row.board.slices}
		for i, p := range row.profiles {
			s := row.board.shapes[i]
			product.Profiles = append(product.Profiles, Profile{
				Name: p.name, Slices: s.slices, Memory: p.memory,
				Size: s.size, Starts: s.starts, Max: s.most, media: strings.Contains(p.name, "+me"),
			})
		}
		slices.SortStableFunc(product.Profiles, func(a, b Profile) int {
			return 8*(b.Size-a.Size) + (b.Slices - a.Slices)
		})
		products = append(products, product)
	}
	return products
})
