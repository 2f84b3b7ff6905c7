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
