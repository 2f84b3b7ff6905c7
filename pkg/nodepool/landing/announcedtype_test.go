package landing_test

import (
	"slices"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// The expected types are what _gpu_name_to_accelerator_type of Ray 2.60.0 and of 2.52.0 return for the driver's names.
func TestTheTypeOfACardIsTheOneThatRayTakesFromItsName(t *testing.T) {
	for product, want := range map[string]struct{ newer, older string }{
		"NVIDIA-H100-80GB-HBM3": {"H100", "H100"},
		"NVIDIA-H100-PCIe":      {"H100", "H100"},
		"NVIDIA-H200":           {"H200", "H200"},
		"NVIDIA-H20-3e":         {"H20", "H20"},
		"NVIDIA-B200":           {"B200", "B200"},
		"NVIDIA-GB200":          {"GB200", "GB200"},
		"NVIDIA-GH200-480GB":    {"GH200", "GH200"},
		"NVIDIA-A100-SXM4-40GB": {"A100", "A100"},
		"NVIDIA-A100-80GB-PCIe": {"A100", "A100"},
		"A100-SXM4-40GB":        {"A100", "A100"},
		"Tesla-T4":              {"T4", "T4"},
		"Tesla-V100-SXM2-16GB":  {"V100", "V100"},
		"Tesla-P100-PCIE-16GB":  {"P100", "P100"},
		"NVIDIA-A10G":           {"A10G", "A10G"},
		"NVIDIA-A10":            {"A10", "A10"},
		"NVIDIA-A30":            {"A30", "A30"},
		"NVIDIA-L4":             {"L4", "L4"},
		"NVIDIA-L40S":           {"L40S", "L40S"},
		"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": {"RTX-PRO-6000", "RTX"},
		"NVIDIA-RTX-A6000":               {"RTX-A6000", "RTX"},
		"NVIDIA-RTX-6000-Ada-Generation": {"RTX-6000", "RTX"},
		"Quadro-RTX-6000":                {"RTX-6000", "RTX"},
		"NVIDIA-GeForce-RTX-4090":        {"GeForce-RTX-4090", "G"},
		"NVIDIA-TITAN-RTX":               {"TITAN-RTX", "TITAN"},
		"GRID-T4-4Q":                     {"T4", "T4"},
		"nvidia-tesla-t4":                {"T4", "T4"},
		"nvidia-tesla-a100":              {"A100", "A100"},
		"nvidia-a100-80gb":               {"A100", "A100"},
		"nvidia-h100-mega-80gb":          {"H100", "H100"},
		"nvidia-h200-141gb":              {"H200", "H200"},
		"nvidia-l4":                      {"L4", "L4"},
		"nvidia-rtx-pro-6000":            {"RTX-PRO-6000", "RTX"},
		"h100":                           {"H100", "H100"},
		"a10g":                           {"A10G", "A10G"},
		"l40s":                           {"L40S", "L40S"},
		"H100_NVLINK_80GB":               {"H100", "H100"},
		"AMD-Instinct-MI300X":            {"", ""},
		"radeon-pro-v520":                {"", ""},
		"GPU":                            {"", ""},
		"":                               {"", ""},
	} {
		for version, want := range map[string]string{"2.60.0": want.newer, "2.52.0": want.older} {
			got := landing.TypesOf(product, version)
			if want == "" && len(got) > 0 || want != "" && !slices.Equal(got, []string{want}) {
				t.Errorf("%s with Ray %s: %q, want %q", product, version, got, want)
			}
		}
		if got := landing.TypesOf(product, ""); want.newer != "" && (!slices.Contains(got, want.newer) || !slices.Contains(got, want.older)) {
			t.Errorf("%s with any Ray: %q, want %q and %q", product, got, want.newer, want.older)
		}
	}
}
