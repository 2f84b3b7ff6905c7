package doctor_test

import (
	"fmt"
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Kueue before 0.19 admits 9 worker groups, and 17 since.
func TestMoreGroupsThanEveryKueueAdmitsAreAnError(t *testing.T) {
	for groups, want := range map[int]raydemand.Severity{9: "", 10: raydemand.Warning, 17: raydemand.Warning, 18: raydemand.Error} {
		all := objects(t, "testdata/shows/queued-groups-too-many.yaml")
		spec := all[0]["spec"].(map[string]any)
		first := spec["workerGroupSpecs"].([]any)[0].(map[string]any)
		var list []any
		for n := range groups {
			group := map[string]any{}
			for key, value := range first {
				group[key] = value
			}
			group["groupName"] = fmt.Sprintf("group-%d", n)
			list = append(list, group)
		}
		spec["workerGroupSpecs"] = list
		if f, _ := findingOf(examine(t, all), "queued-groups-too-many"); f.Severity != want {
			t.Errorf("%d groups: severity %q, want %q", groups, f.Severity, want)
		}
	}
}
