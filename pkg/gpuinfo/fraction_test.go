package gpuinfo_test

import (
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func TestTheFractionOfACardIsToldWhereAllProductsAgree(t *testing.T) {
	for profile, want := range map[string][2]int{
		"1g.10gb": {1, 7}, "3g.20gb": {3, 7}, "7g.141gb": {7, 7}, "1g.6gb": {1, 4}, "4g.24gb": {4, 4},
		"1g.24gb": {}, // one seventh of an H100 with 94 GB, one quarter of an RTX PRO 6000
		"9g.99gb": {},
	} {
		slices, card, known := gpuinfo.OfCard(profile)
		if slices != want[0] || card != want[1] || known != (want[1] != 0) {
			t.Errorf("%s: %d of %d, %t; want %v", profile, slices, card, known, want)
		}
	}
}

func TestAProfileExistsUnderTheNamesOfOtherDriversToo(t *testing.T) {
	for name, want := range map[string]bool{"7g.79gb": true, "3g.21gb": true, "1g.10gb+me": true, "5g.50gb": false, "1g.10gb+gfx": false, "1g.60gb": false} {
		profile, err := gpuinfo.ParseProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := gpuinfo.Exists(profile); got != want {
			t.Errorf("%s exists: %t, want %t", name, got, want)
		}
	}
}

func TestTheSmallestProfileHasAPartOfComputeAndOfMemory(t *testing.T) {
	for product, parts := range map[string]map[float64]string{
		"H100 80GB":    {0.125: "1g.10gb", 0.25: "2g.20gb", 0.5: "4g.40gb", 0.375: "3g.40gb", 0.6: "", 1: "", 0.01: "1g.10gb"},
		"A30":          {0.125: "1g.6gb", 0.25: "1g.6gb", 0.5: "2g.12gb", 0.6: ""},
		"RTX PRO 6000": {0.25: "1g.24gb", 0.5: "2g.48gb"},
		"RTX PRO 4500": {0.25: "1g.16gb", 0.5: "1g.16gb", 0.6: ""},
	} {
		p, known := gpuinfo.ProductNamed(product)
		if !known {
			t.Fatal(product)
		}
		for part, want := range parts {
			got, has := p.AtLeast(part)
			if has != (want != "") || has && got.Name != want {
				t.Errorf("%v of %s: %s, %t; want %q", part, product, got.Name, has, want)
			}
			if has && (p.Part(got) < part || p.Part(got) >= 1) {
				t.Errorf("%s is %v of %s", got.Name, p.Part(got), product)
			}
		}
	}
}
