package gpuinfo

// OfCard returns how many compute slices an instance of a profile has, and how many a card that holds it has, when all
// products with this profile agree: 1 of 7 for 1g.10gb, nothing for 1g.24gb, which is a seventh of an H100 and a
// quarter of an RTX PRO 6000.
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

// Exists reports whether any known product has this profile, under this name or one that another driver gives it.
func Exists(name ProfileName) bool {
	for _, product := range assembled() {
		if product.Has(name) {
			return true
		}
	}
	return false
}

// Has reports whether the product has this profile, under this name or one that another driver gives it.
func (p Product) Has(name ProfileName) bool {
	for _, profile := range p.Profiles {
		if known, err := ParseProfile(profile.Name); err == nil && known.Near(name) {
			return true
		}
	}
	return false
}
