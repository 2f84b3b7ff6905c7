package printer

import (
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

func TestStatusShowsWhichMachinesGo(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 3, 10, 0, time.UTC)
	var out strings.Builder
	err := WriterOf("table", Look{Now: time.Now}, WriteCluster)(&out, apiv1.Cluster{Departures: []apiv1.Departure{
		{Pod: "gpu-1", Group: "gpu", Sign: "karpenter-disrupted", Message: "taint karpenter.sh/disrupted", Certain: true, Leaving: true, Deadline: &noon},
		{Pod: "gpu-2", Group: "gpu", Sign: "cordoned", Message: "cordoned"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{"gpu-1", "gpu", "LEAVING", "12:03:10", "karpenter-disrupted: taint karpenter.sh/disrupted"}, {"gpu-2", "gpu", "warning", "-", "cordoned: cordoned"},
	} {
		found := false
		for _, line := range strings.Split(out.String(), "\n") {
			found = found || strings.Join(strings.Fields(line), " ") == strings.Join(want, " ")
		}
		if !found {
			t.Errorf("no line %v in:\n%s", want, out.String())
		}
	}
}
