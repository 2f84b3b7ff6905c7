package docs

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/addon/costs"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool/price"
)

func TestThePageOfCostsHasAllCausesCodesAndLists(t *testing.T) {
	page := read(t, "docs/reference/costs.md")
	for _, cause := range ledger.Causes() {
		if !strings.Contains(page, "\n| `"+string(cause)+"` | ") {
			t.Errorf("there is no row for the cause %s", cause)
		}
	}
	for _, why := range []string{costs.Request, costs.Driver, costs.PlacementGroup, costs.WaitsForNode, costs.NeverJoined,
		costs.Failed, costs.MachineGone, costs.RaySilent, costs.Off, costs.FormerGroup} {
		if !strings.Contains(page, "\n| `"+why+"` | `") {
			t.Errorf("there is no row for the code %s", why)
		}
	}
	for _, list := range price.Lists() {
		if !strings.Contains(page, "\n| "+list.Cloud+" | "+list.Region+" | "+list.Date+" | ") {
			t.Errorf("there is no row for the list of %s in %s", list.Cloud, list.Region)
		}
	}
}
