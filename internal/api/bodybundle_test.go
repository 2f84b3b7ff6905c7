package api

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestBundlesMayHaveSlices(t *testing.T) {
	gpu := raydemand.Bundle{"GPU": raydemand.One}
	tenGi := &raydemand.SliceRequirement{Memory: 10 << 30}
	for body, want := range map[string][]raydemand.Request{
		`[{"GPU": 1, "slice": {"memory": "10Gi"}}, {"slice": {"memory": 10737418240}}, {"GPU": 1}]`: {
			{Bundle: gpu, Count: 2, Slice: tenGi}, {Bundle: gpu, Count: 1},
		},
		`[{"resources": {"CPU": 2}, "slice": {"computeFraction": 0.14, "isolation": "hardware"}, "count": 3}]`: {
			{Bundle: raydemand.Bundle{"CPU": raydemand.Whole(2), "GPU": raydemand.One}, Count: 3, Slice: &raydemand.SliceRequirement{ComputeFraction: 0.14, Isolation: "hardware"}},
		},
		`[{"resources": {"GPU": 0.5}, "count": 2}]`:            {{Bundle: raydemand.Bundle{"GPU": raydemand.One / 2}, Count: 2}},
		`[{"resources": 1, "slice": 2, "count": 3, "GPU": 1}]`: {{Bundle: raydemand.Bundle{"resources": raydemand.One, "slice": raydemand.Whole(2), "count": raydemand.Whole(3), "GPU": raydemand.One}, Count: 1}},
	} {
		read, err := DecodeRequest([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if diff := cmp.Diff(want, read.Merged()); diff != "" {
			t.Errorf("%s: -want +got\n%s", body, diff)
		}
		text, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeRequest(text); err != nil || cmp.Diff(want, again.Merged()) != "" {
			t.Errorf("written as %s, read again as %+v (%v)", text, again, err)
		}
	}
}

func TestABadSliceNamesTheField(t *testing.T) {
	for body, want := range map[string]apiv1.FieldError{
		`{"bundles": [{"GPU": 1}, {"GPU": 1, "slice": {"memory": "10GB"}}]}`: {
			Field: "bundles[1].slice.memory", Value: `"10GB"`, Expected: raydemand.SliceMemoryWant + "; write 10G without B"},
		`[{"slice": {"memory": "-1Gi"}}]`:                           {Field: "bundles[0].slice.memory", Value: `"-1Gi"`, Expected: raydemand.SliceMemoryWant},
		`[{"slice": {"computeFraction": 105}}]`:                     {Field: "bundles[0].slice.computeFraction", Value: "105", Expected: raydemand.SliceComputeWant},
		`[{"slice": {"isolation": "none"}}]`:                        {Field: "bundles[0].slice.isolation", Value: `"none"`, Expected: raydemand.SliceIsolationWant},
		`[{"slice": {}}]`:                                           {Field: "bundles[0].slice", Value: "{}", Expected: raydemand.SliceWant},
		`[{"slice": "10Gi"}]`:                                       {Field: "bundles[0].slice", Value: `"10Gi"`, Expected: "a number of at least 0"},
		`[{"slice": {"memory": "1Gi", "memory": "2Gi"}}]`:           {Field: "bundles[0].slice.memory", Expected: "a field that appears once"},
		`[{"resources": {"GPU": -1}, "slice": {"memory": "1Gi"}}]`:  {Field: "bundles[0].resources.GPU", Value: "-1", Expected: "a number of at least 0"},
		`[{"resources": {"GPU": 1}, "count": 0}]`:                   {Field: "bundles[0].count", Value: "0", Expected: "a whole number from 1 to 1000000"},
		`[{"resources": {"GPU": 1}, "count": 1000000}, {"GPU": 1}]`: {Field: "num_cpus", Value: "1000001 with the bundles", Expected: "at most 1000000 together with the bundles"},
	} {
		_, err := DecodeRequest([]byte(body))
		var refused *problem
		if !errors.As(err, &refused) || len(refused.Fields) != 1 {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if diff := cmp.Diff(want, refused.Fields[0]); diff != "" {
			t.Errorf("%s: -want +got\n%s", body, diff)
		}
	}
}
