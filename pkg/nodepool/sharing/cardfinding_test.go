package sharing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

const a100 = "NVIDIA A100-SXM4-40GB"

func wholeCard(index int) gpuinfo.Card {
	return gpuinfo.Card{Index: index, Product: a100, Healthy: true, Cut: &gpuinfo.Cut{Instances: []gpuinfo.GPUInstance{}}}
}

// cutCard has instances one after another, each with one compute instance.
func cutCard(index int, instances ...gpuinfo.Instance) gpuinfo.Card {
	card := wholeCard(index)
	card.Cut.Enabled, card.Cut.Pending = true, true
	for i, instance := range instances {
		card.Cut.Instances = append(card.Cut.Instances, gpuinfo.GPUInstance{ID: uint32(i), Instance: instance, Compute: 1})
	}
	return card
}

func TestWhatIsWrongWithACardIsFound(t *testing.T) {
	errors := uint64(3)
	broken, rows, ecc, pending := wholeCard(0), wholeCard(1), wholeCard(2), wholeCard(3)
	broken.Healthy, broken.Problem = false, "the card must be reset"
	rows.Rows = &gpuinfo.RemappedRows{Pending: true}
	ecc.Uncorrected = &errors
	pending.Cut.Pending = true
	pages := wholeCard(8)
	pages.Pages = &gpuinfo.RetiredPages{SingleBit: 2, Pending: true}
	hidden := cutCard(5)
	hidden.Cut.Instances = nil
	unusable := cutCard(6, gpuinfo.Instance{Profile: "3g.20gb", Start: 4})
	unusable.Cut.Instances[0].Compute = 0
	for _, test := range []struct {
		card gpuinfo.Card
		want []string
	}{
		{broken, []string{"the card must be reset"}},
		{rows, []string{"memory rows are remapped at the next reset of the card; until then the driver keeps work off them"}},
		{ecc, []string{"3 memory errors since the last reset that ECC could not correct"}},
		{pages, []string{"memory pages are retired when the driver is loaded again; until then work may use them"}},
		{pending, []string{"MIG is off and will be on after the next reset of the card"}},
		{cutCard(4), []string{"MIG is on and there are no instances: nothing can run on the card"}},
		{hidden, []string{"the driver does not show MIG instances to this process: run it as root or with CAP_SYS_ADMIN, in a container also with NVIDIA_MIG_MONITOR_DEVICES=all"}},
		{unusable, []string{"3g.20gb at 4 has no compute instance: nothing can run there"}},
		{cutCard(7, gpuinfo.Instance{Profile: "4g.20gb", Start: 4}), []string{"the placement tables of A100 40GB do not allow this layout: placing 4g.20gb at 4: on A100 40GB it can begin at [0]"}},
		{wholeCard(0), nil},
		{cutCard(1, gpuinfo.Instance{Profile: "7g.40gb"}), nil},
	} {
		if diff := cmp.Diff(test.want, sharing.CardFaults(test.card)); diff != "" {
			t.Errorf("card %d (-want +got):\n%s", test.card.Index, diff)
		}
	}
}
