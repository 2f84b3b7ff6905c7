package gpuinfo

// OfCard returns the number of compute slices of an instance with this profile, and of a card that holds it, if all
// products with the profile agree. For 1g.10gb it returns 1 and 7. For 1g.24gb it returns nothing: that is one seventh
// of an H100 and one quarter of an RTX PRO 6000.
func OfCard(profile string) (slices, card int, known bool) {
	for _, product := range assembled() {
		p, has := product.Profile(profile)
		if !has {
			continue
		}
		if known && (p.Slices != slices || product.Slices != card) {
			return 0, 0, false
		}
		slices, card, known = p.Slices, product.Slices, true
	}
	return slices, card, known
}

// Part returns the part of a card that an instance is: the mean of its parts of compute and of memory. A card's
// instances together have no more than its compute and its memory, so the means of a layout never exceed 1; what a
// layout leaves unused belongs to nobody.
func (p Product) Part(of Profile) float64 {
	return (float64(of.Slices)/float64(p.Slices) + float64(of.Size)/float64(p.Units)) / 2
}

// Exists reports whether a known product has this profile, under this name or under the name that another driver uses.
func Exists(name ProfileName) bool {
	for _, product := range assembled() {
		if product.Has(name) {
			return true
		}
	}
	return false
}

// Has reports whether the product has this profile, under this name or under the name that another driver uses.
func (p Product) Has(name ProfileName) bool {
	for _, profile := range p.Profiles {
		if known, err := ParseProfile(profile.Name); err == nil && known.Near(name) {
			return true
		}
	}
	return false
}
