// Package gpuname says which GPU resource a wrong name means. It must not know objects, or judge whether a name is
// wrong where it stands.
package gpuname

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/typo"
	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// MIGPrefix begins the names of MIG profiles as NVIDIA's device plugin announces them.
const MIGPrefix = "nvidia.com/mig-"

// MisspeltMIG returns what a MIG name without its hyphen means; an article on AKS spells it so. It returns nothing for
// other names.
func MisspeltMIG(name string) string {
	profile, misspelt := strings.CutPrefix(name, "nvidia.com/mig")
	if !misspelt || strings.HasPrefix(profile, "-") {
		return ""
	}
	if _, err := (gpuinfo.Names{}).Resource(MIGPrefix + profile); err != nil {
		return ""
	}
	return MIGPrefix + profile
}

// NearestProfile returns the plain profile with the most similar name and as many compute slices.
func NearestProfile(products []gpuinfo.Product, suffix string) (string, bool) {
	const otherSlices = 10 // more than any two names differ
	best, least := "", -1
	for _, product := range products {
		for _, profile := range product.Profiles {
			if !profile.Plain() {
				continue
			}
			distance := typo.Distance(suffix, profile.Name)
			if suffix[:min(len(suffix), 1)] != profile.Name[:1] {
				distance += otherSlices
			}
			if least < 0 || distance < least || distance == least && profile.Name < best {
				best, least = profile.Name, distance
			}
		}
	}
	return best, least >= 0 && least < otherSlices
}

// LabelOfNodes reports whether the name is that of a label which AMD's node labeller or NVIDIA's feature discovery
// writes, and returns its domain.
func LabelOfNodes(name string) (domain string, is bool) {
	domain, label, _ := strings.Cut(name, "/gpu.")
	labels := map[string][]string{
		"amd.com": {"cu-count", "device-id", "driver-version", "family", "product-name", "simd-count", "vram"},
		"nvidia.com": {"compute.major", "compute.minor", "count", "family", "machine", "memory", "mode", "present",
			"product", "replicas", "sharing-strategy"},
	}
	return domain, slices.Contains(labels[domain], label)
}
