package gpuinfo

import (
	"slices"
	"strings"
	"sync"
)

// MiB is an amount of memory in 1024 x 1024 bytes, as nvidia-smi and the node labels count.
type MiB int64

// Product is a GPU that can be cut with MIG.
type Product struct {
	// Name is NVIDIA's name with the memory where that tells products apart: A100 40GB.
	Name string
	// GB is the nominal memory of a whole card. What a card really has is a little less than GB x 1024 MiB, never more.
	GB int
	// Units is the length of the memory axis on which instances are placed, Slices how many compute slices the card
	// has.
	Units, Slices int
	// Profiles are what an instance can be, the largest first.
	Profiles []Profile
}

// Profile is one kind of MIG instance of a product.
type Profile struct {
	// Name is as nvidia-smi writes it: 1g.10gb+me.
	Name string
	// ID is NVML's number of the GPU instance profile, -1 where unknown.
	ID int
	// Slices of the product's compute slices; Multiprocessors are the SMs in them, 0 where no source tells.
	Slices, Multiprocessors int
	// Memory is what an instance was seen to have; 0 where no source tells. Drivers differ by some percent: what a node
	// says of its own instances goes before it.
	Memory MiB
	// Size is in units of the memory axis, Starts where on it an instance may begin.
	Size   int
	Starts []int
	// Max is how many instances one card can hold.
	Max int
	// media: it holds engines (JPEG, OFA, extra decoders) of which one instance of a card is the owner.
	media bool
	// Source of memory and multiprocessors, and PlacementSource of Size, Starts and Max.
	Source, PlacementSource string
}

// Plain reports whether the profile is named by slices and memory alone, without attributes.
func (p Profile) Plain() bool { return !strings.ContainsAny(p.Name, "+-") }

// Profile returns the profile of that name, in either spelling.
func (p Product) Profile(name string) (Profile, bool) {
	for _, profile := range p.Profiles {
		if profile.Name == name {
			return profile, true
		}
	}
	wanted, err := ParseProfile(name)
	if err != nil {
		return Profile{}, false
	}
	for _, profile := range p.Profiles {
		if profile.Name == wanted.String() {
			return profile, true
		}
	}
	return Profile{}, false
}

// Products returns all products in the order of the table; the caller may change what it gets.
func Products() []Product {
	products := slices.Clone(assembled())
	for i := range products {
		products[i].Profiles = slices.Clone(products[i].Profiles)
		for j := range products[i].Profiles {
			products[i].Profiles[j].Starts = slices.Clone(products[i].Profiles[j].Starts)
		}
	}
	return products
}

// ProductNamed returns the product with this Name. All callers share it: nobody may change it.
func ProductNamed(name string) (Product, bool) {
	for _, product := range assembled() {
		if product.Name == name {
			return product, true
		}
	}
	return Product{}, false
}

// PerCard returns how many instances of a profile one card of any known product can hold, when all products that have
// the profile agree: 7 for 1g.18gb, nothing for 1g.10gb, of which an A100 holds 4 or 7.
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
		for _, p := range row.profiles {
			s := row.board.shapes[p.shape]
			product.Profiles = append(product.Profiles, Profile{
				Name: p.name, ID: s.id, Slices: s.slices, Multiprocessors: p.sm, Memory: p.memory,
				Size: s.size, Starts: s.starts, Max: s.most, media: strings.Contains(p.shape, "+me"),
				Source: row.source, PlacementSource: s.source,
			})
		}
		slices.SortStableFunc(product.Profiles, func(a, b Profile) int {
			return 8*(b.Size-a.Size) + (b.Slices - a.Slices)
		})
		products = append(products, product)
	}
	return products
})
