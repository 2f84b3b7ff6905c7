package gpuinfo

import (
	"strings"
	"testing"
)

func TestMachinesHaveTheCardsThatTheirCloudDocuments(t *testing.T) {
	for name, want := range map[string]int64{
		"g4dn.xlarge": 1, "g4dn.12xlarge": 4, "p4d.24xlarge": 8, "p2.16xlarge": 16, "Standard_NC4as_T4_v3": 1,
		"standard_nd96asr_v4": 8, "a2-megagpu-16g": 16, "g2-standard-24": 2, "ecs.gn6i-c24g1.12xlarge": 2, "BM.GPU4.8": 8,
		"g6f.large": 0, "Standard_NV6ads_A10_v5": 0, "g4-standard-24": 0, "g4-standard-48": 1, "ecs.sgn8ia-m4.2xlarge": 0,
		"Standard_NV12ads_V710_v5": 0, "Standard_NV24ads_V710_v5": 1,
	} {
		machine, known := MachineOf(name)
		if !known || machine != want {
			t.Errorf("%s: %+v, known %v; want %d cards", name, machine, known, want)
		}
	}
	for _, name := range []string{"", "m5.large", "n1-standard-8", "k3s", "Standard_NP10s"} {
		if machine, known := MachineOf(name); known {
			t.Errorf("%q is known as %+v", name, machine)
		}
	}
}

func TestNoMachineIsInTwoRows(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range machineTable {
		if row.cards < 0 || row.cards > 16 || row.source == "" {
			t.Errorf("%d cards by %q: %s", row.cards, row.source, row.types)
		}
		for name := range strings.FieldsSeq(strings.ToLower(row.types)) {
			if seen[name] {
				t.Errorf("%s is in two rows", name)
			}
			seen[name] = true
		}
	}
}

// Names that end with their number of GPUs agree with the table.
func TestNamesThatCountTheirGPUsAgreeWithTheTable(t *testing.T) {
	for _, row := range machineTable {
		for name := range strings.FieldsSeq(row.types) {
			counted := ""
			switch {
			case strings.HasPrefix(name, "a") && strings.HasSuffix(name, "g"):
				counted = strings.TrimSuffix(name[strings.LastIndex(name, "-")+1:], "g")
			case row.source == oci:
				counted = name[strings.LastIndex(name, ".")+1:]
			default:
				continue
			}
			if number(counted) != int(row.cards) {
				t.Errorf("%s has %d cards in the table", name, row.cards)
			}
		}
	}
}

func TestOnlyN1HasAnyNumberOfCards(t *testing.T) {
	if most, known := MostAttached("nvidia-tesla-t4"); !known || most != 4 {
		t.Errorf("T4: %d, %v", most, known)
	}
	if most, known := MostAttached("nvidia-l4"); known {
		t.Errorf("L4: %d", most)
	}
}
