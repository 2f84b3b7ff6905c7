package gpuinfo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The counts are from NVIDIA's MIG User Guide, "Supported MIG Profiles", or from mig-parted if the guide has no table.
func TestEveryProductHasTheProfilesThatNVIDIAPublishes(t *testing.T) {
	want := map[string]string{
		"A30":          "4g.24gb×1 2g.12gb×2 2g.12gb+me×1 1g.6gb×4 1g.6gb+me×1",
		"A100 40GB":    "7g.40gb×1 4g.20gb×1 3g.20gb×2 2g.10gb×3 1g.10gb×4 1g.5gb×7 1g.5gb+me×1",
		"A100 80GB":    "7g.80gb×1 4g.40gb×1 3g.40gb×2 2g.20gb×3 1g.20gb×4 1g.10gb×7 1g.10gb+me×1",
		"H100 80GB":    "7g.80gb×1 4g.40gb×1 3g.40gb×2 2g.20gb×3 1g.20gb×4 1g.10gb×7 1g.10gb+me×1",
		"H100 94GB":    "7g.94gb×1 4g.47gb×1 3g.47gb×2 2g.24gb×3 1g.24gb×4 1g.12gb×7 1g.12gb+me×1",
		"H100 96GB":    "7g.96gb×1 4g.48gb×1 3g.48gb×2 2g.24gb×3 1g.24gb×4 1g.12gb×7 1g.12gb+me×1",
		"H20 96GB":     "7g.96gb×1 4g.48gb×1 3g.48gb×2 2g.24gb×3 1g.24gb×4 1g.12gb×7 1g.12gb+me×1",
		"GH200 144GB":  "7g.144gb×1 4g.72gb×1 3g.72gb×2 2g.36gb×3 1g.36gb×4 1g.18gb×7 1g.18gb+me×1",
		"H200":         "7g.141gb×1 4g.71gb×1 3g.71gb×2 2g.35gb×3 1g.35gb×4 1g.18gb×7 1g.18gb+me×1",
		"H20 141GB":    "7g.141gb×1 4g.71gb×1 3g.71gb×2 2g.35gb×3 1g.35gb×4 1g.18gb×7 1g.18gb+me×1",
		"B200":         "7g.180gb×1 4g.90gb×1 3g.90gb×2 2g.45gb×3 1g.45gb×4 1g.23gb×7 1g.23gb+me×1",
		"GB200":        "7g.186gb×1 4g.93gb×1 3g.93gb×2 2g.47gb×3 1g.47gb×4 1g.23gb×7 1g.23gb+me×1",
		"B300":         "7g.269gb×1 4g.135gb×1 3g.135gb×2 2g.67gb×3 1g.67gb×4 1g.34gb×7 1g.34gb+me×1",
		"GB300":        "7g.278gb×1 4g.139gb×1 3g.139gb×2 2g.70gb×3 1g.70gb×4 1g.35gb×7 1g.35gb+me×1",
		"RTX PRO 6000": "4g.96gb×1 4g.96gb+gfx×1 2g.48gb×2 2g.48gb+gfx×2 2g.48gb+me.all×1 2g.48gb-me×2 1g.24gb×4 1g.24gb+me×1 1g.24gb+gfx×4 1g.24gb+me.all×1 1g.24gb-me×4",
		"RTX PRO 5000": "2g.48gb×1 2g.48gb+gfx×1 1g.24gb×2 1g.24gb+me×1 1g.24gb+gfx×2 1g.24gb+me.all×1 1g.24gb-me×2",
		"RTX PRO 4500": "2g.32gb×1 2g.32gb+gfx×1 1g.16gb×2 1g.16gb+gfx×2 1g.16gb+me.all×1 1g.16gb-me×2",
	}
	got := map[string]string{}
	for _, p := range Products() {
		var profiles []string
		for _, profile := range p.Profiles {
			profiles = append(profiles, profile.Name+"×"+string(rune('0'+profile.Max)))
		}
		got[p.Name] = strings.Join(profiles, " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("profiles and how many fit on a card (-published +table):\n%s", diff)
	}
}

func TestEveryRowOfTheTablesIsWhole(t *testing.T) {
	eachProduct(t, func(t *testing.T, p Product) {
		for _, profile := range p.Profiles {
			name, err := ParseProfile(profile.Name)
			switch {
			case err != nil:
				t.Error(err)
			case name.String() != profile.Name || name.Slices != profile.Slices || name.Compute != profile.Slices:
				t.Errorf("%s: name says %+v, the shape %d slices", profile.Name, name, profile.Slices)
			case profile.Memory != 0 && (profile.Memory > MiB(name.GB)*1024 || profile.Memory < MiB(name.GB)*1024*85/100):
				t.Errorf("%s has %d MiB", profile.Name, profile.Memory)
			case profile.Max > len(profile.Starts) || profile.Max < 1:
				t.Errorf("%s: %d instances with starts %v", profile.Name, profile.Max, profile.Starts)
			}
			for _, start := range profile.Starts {
				if start+profile.Size > p.Units {
					t.Errorf("%s at %d ends behind unit %d", profile.Name, start, p.Units)
				}
			}
		}
	})
}

func TestModelsAreToldByTheirNames(t *testing.T) {
	for model, want := range map[string]string{
		"NVIDIA-A100-SXM4-40GB": "A100 40GB", "A100-SXM4-40GB": "A100 40GB", "NVIDIA-A100-PCIE-40GB": "A100 40GB", "nvidia-tesla-a100": "A100 40GB",
		"NVIDIA-A100-80GB-PCIe": "A100 80GB", "nvidia-a100-80gb": "A100 80GB", "NVIDIA-A30": "A30",
		"NVIDIA-H100-80GB-HBM3": "H100 80GB", "NVIDIA-H100-PCIe": "H100 80GB", "nvidia-h100-mega-80gb": "H100 80GB", "NVIDIA-H100-NVL": "H100 94GB", "NVIDIA H100 NVL": "H100 94GB",
		"GH200_480GB": "H100 96GB", "NVIDIA-GH200-480GB": "H100 96GB", "NVIDIA-GH200-144G-HBM3e": "GH200 144GB",
		"NVIDIA H20-3e": "H20 141GB", "NVIDIA-H20": "H20 96GB", "NVIDIA-H200": "H200", "nvidia-h200-141gb": "H200", "NVIDIA-B200": "B200", "nvidia-gb200": "GB200",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX PRO 6000", "nvidia-rtx-pro-6000": "RTX PRO 6000",
		"NVIDIA-RTX-PRO-5000-72GB-Blackwell": "", "Tesla-T4": "", "a100": "", "NVIDIA-H100": "", "NVIDIA-A10": "", "": "",
	} {
		if p, known := ProductOf(model); p.Name != want || known != (want != "") {
			t.Errorf("%q is %q, want %q", model, p.Name, want)
		}
	}
}

func TestPerCardIsKnownWhereAllProductsAgree(t *testing.T) {
	for profile, want := range map[string]int{"1g.18gb": 7, "1g.5gb": 7, "3g.40gb": 2, "1g.6gb": 4, "1g.10gb": 0, "1g.24gb": 0, "1g.99gb": 0, "1g.10gb+me": 1} {
		if n, known := PerCard(profile); n != want || known != (want > 0) {
			t.Errorf("%s: %d to a card, want %d", profile, n, want)
		}
	}
}

func TestProfileNamesAreReadAndWrittenBothWays(t *testing.T) {
	for _, test := range []struct{ in, plus, dots string }{
		{"1g.10gb", "1g.10gb", "1g.10gb"},
		{"1g.10gb+me", "1g.10gb+me", "1g.10gb.me"},
		{"1g.10gb.me", "1g.10gb+me", "1g.10gb.me"},
		{"1g.24gb.me.all", "1g.24gb+me.all", "1g.24gb.me.all"},
		{"1g.24gb+gfx", "1g.24gb+gfx", "1g.24gb.gfx"},
		{"1g.24gb+me,gfx", "1g.24gb+me,gfx", "1g.24gb.me.gfx"},
		{"1g.24gb-me", "1g.24gb-me", "1g.24gb-me"},
		{"1c.2g.10gb", "1c.2g.10gb", "1c.2g.10gb"},
		{"2c.2g.10gb", "2g.10gb", "2g.10gb"},
	} {
		p, err := ParseProfile(test.in)
		if err != nil || p.String() != test.plus || p.Label() != test.dots {
			t.Errorf("%s is %s and %s, %v; want %s and %s", test.in, p, p.Label(), err, test.plus, test.dots)
		}
	}
	for _, bad := range []string{"", "mig-1g.5gb", "0g.5gb", "1g.0gb", "1g.5GB", "1g.5gb+xyz", "3c.2g.10gb", "1g.5gb.count", "1g.5gb-gfx", "1g.5gb+", "1g.99999999999999999999gb"} {
		if p, err := ParseProfile(bad); err == nil {
			t.Errorf("%q was read as %v", bad, p)
		}
	}
}

func TestProfilesOfOldDriversAreNearThoseOfNewOnes(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"3g.21gb", "3g.20gb", true}, {"7g.79gb", "7g.80gb", true}, {"1g.24gb", "1g.23gb", true},
		{"1g.5gb", "1g.10gb", false}, {"3g.20gb", "4g.20gb", false}, {"1g.10gb+me", "1g.10gb", false},
	} {
		a, errA := ParseProfile(test.a)
		b, errB := ParseProfile(test.b)
		if errA != nil || errB != nil || a.Near(b) != test.want || b.Near(a) != test.want {
			t.Errorf("%s near %s: want %v", test.a, test.b, test.want)
		}
	}
}
