package kube

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestRequestsInTheAnnotationMayWishForSlices(t *testing.T) {
	requests, problems := decodeRequests(`[
		{"resources": {"CPU": 2}, "slice": {"memory": "10Gi", "isolation": "hardware"}, "count": 3},
		{"resources": {"GPU": 1}, "slice": {"memory": "10GB"}, "count": 1},
		{"resources": {"GPU": 1}, "slice": {}, "count": 1},
		{"resources": {"GPU": 1}, "count": 1}]`)
	want := []raydemand.Request{
		{Bundle: raydemand.Bundle{"CPU": raydemand.Whole(2), "GPU": raydemand.One}, Count: 3, Slice: &raydemand.SliceWish{Memory: 10 << 30, Isolation: "hardware"}},
		{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 1},
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(problems) != 2 || !strings.Contains(problems[0], `entry 1 is left out: slice.memory: "10GB": want `) || !strings.Contains(problems[1], "entry 2 is left out: slice: {}: want ") {
		t.Errorf("problems: %q", problems)
	}
	annotations, err := requestAnnotations(want, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	again, problems := decodeRequests(annotations[ResourceRequestsAnnotation].(string))
	if diff := cmp.Diff(want, again); diff != "" || len(problems) > 0 {
		t.Errorf("what was written is read again as another: %s (%v)", diff, problems)
	}
}
