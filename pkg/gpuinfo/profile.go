package gpuinfo

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ProfileName is the parsed name of a MIG profile: [<C>c.]<G>g.<N>gb with attributes.
type ProfileName struct {
	// Compute is the number of compute slices of the compute instance (C), Slices that of the GPU instance (G). They
	// differ only if a GPU instance has several compute instances.
	Compute, Slices int
	// GB is the nominal memory in the name, which is not the usable memory.
	GB int
	// Attributes are me, me.all and gfx in the order of the name, or only -me.
	Attributes []string
}

// withoutMedia is the only attribute that includes a minus.
const withoutMedia = "-me"

var profileGrammar = regexp.MustCompile(`^(?:(\d{1,2})c\.)?(\d{1,2})g\.(\d{1,4})gb(-me|(?:[+.,](?:me\.all|me|gfx))*)$`)

// ParseProfile parses a profile in the format of NVIDIA's tools (1g.10gb+me), or of labels and resource names
// (1g.10gb.me).
func ParseProfile(name string) (ProfileName, error) {
	match := profileGrammar.FindStringSubmatch(name)
	if match == nil {
		return ProfileName{}, fmt.Errorf("reading MIG profile %q: want a name like 1g.10gb, 1g.10gb+me or 1c.2g.20gb",
			name)
	}
	p := ProfileName{Slices: number(match[2]), GB: number(match[3])}
	p.Compute = p.Slices
	if match[1] != "" {
		p.Compute = number(match[1])
	}
	switch {
	case match[4] == withoutMedia:
		p.Attributes = []string{withoutMedia}
	case match[4] != "":
		for _, attribute := range attributeGrammar.FindAllStringSubmatch(match[4], -1) {
			p.Attributes = append(p.Attributes, attribute[1])
		}
	}
	if p.Slices == 0 || p.GB == 0 || p.Compute == 0 || p.Compute > p.Slices {
		return ProfileName{}, fmt.Errorf("reading MIG profile %q: want at least one slice and one GB, "+
			"and no more compute slices than the instance has", name)
	}
	return p, nil
}

var attributeGrammar = regexp.MustCompile(`[+.,](me\.all|me|gfx)`)

// number converts digits whose length a grammar already limits.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// String returns the name in the format of nvidia-smi and mig-parted.
func (p ProfileName) String() string { return p.written("+", ",") }

// Label returns the name in the format of labels and resource names, which do not allow a plus (NDP, internal/lm).
func (p ProfileName) Label() string { return p.written(".", ".") }

func (p ProfileName) written(first, next string) string {
	text := fmt.Sprintf("%dg.%dgb", p.Slices, p.GB)
	if p.Compute != p.Slices {
		text = fmt.Sprintf("%dc.%s", p.Compute, text)
	}
	switch {
	case len(p.Attributes) == 0:
		return text
	case p.Attributes[0] == withoutMedia:
		return text + withoutMedia
	}
	return text + first + strings.Join(p.Attributes, next)
}

// Near reports whether two names mean the same profile. Old and new drivers use different values for the memory
// (3g.21gb and 3g.20gb, 7g.79gb and 7g.80gb, 1g.24gb and 1g.23gb on a GB200), which differ by less than a tenth. Slices
// and attributes are equal.
func (p ProfileName) Near(other ProfileName) bool {
	a, b := p, other
	a.GB, b.GB = 1, 1
	return a.String() == b.String() && 10*max(p.GB-other.GB, other.GB-p.GB) <= max(p.GB, other.GB)
}

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

// Exists reports whether a known product has this profile, under this name or under the name that another driver uses.
func Exists(name ProfileName) bool {
	return slices.ContainsFunc(assembled(), func(product Product) bool { return product.Has(name) })
}

// Has reports whether the product has this profile, under this name or under the name that another driver uses.
func (p Product) Has(name ProfileName) bool {
	return slices.ContainsFunc(p.Profiles, func(profile Profile) bool {
		known, err := ParseProfile(profile.Name)
		return err == nil && known.Near(name)
	})
}
