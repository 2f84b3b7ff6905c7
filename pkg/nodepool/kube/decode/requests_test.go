package decode

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestRequestsInTheAnnotationMayRequireSlices(t *testing.T) {
	requests, problems := decodeRequests(`[
		{"resources": {"CPU": 2}, "slice": {"memory": "10Gi", "isolation": "hardware"}, "count": 3},
		{"resources": {"GPU": 1}, "slice": {"memory": "10GB"}, "count": 1},
		{"resources": {"GPU": 1}, "slice": {}, "count": 1},
		{"resources": {"GPU": 1}, "count": 1}]`)
	want := []raydemand.Request{
		{Bundle: raydemand.Bundle{"CPU": raydemand.Whole(2), "GPU": raydemand.One}, Count: 3, Slice: &raydemand.SliceRequirement{Memory: 10 << 30, Isolation: "hardware"}},
		{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 1},
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(problems) != 2 || !strings.Contains(problems[0], `entry 1 is ignored: slice.memory: "10GB": want `) || !strings.Contains(problems[1], "entry 2 is ignored: slice: {}: want ") {
		t.Errorf("problems: %q", problems)
	}
	annotations, err := EncodeRequests(want, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	again, problems := decodeRequests(annotations[ResourceRequestsAnnotation].(string))
	if diff := cmp.Diff(want, again); diff != "" || len(problems) > 0 {
		t.Errorf("what was written is read again as another: %s (%v)", diff, problems)
	}
}

func TestRequestsAreKeptInTwoAnnotations(t *testing.T) {
	since := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("CET", 3600))
	got, err := EncodeRequests([]raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: 5000}, Count: 2}}, since)
	want := map[string]any{
		ResourceRequestsAnnotation: `[{"resources":{"GPU":0.5},"count":2}]`, RequestedSinceAnnotation: "2026-03-01T12:00:00Z",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("%v; annotations (-want +got):\n%s", err, diff)
	}
	if requests, problems := decodeRequests(got[ResourceRequestsAnnotation].(string)); len(requests) != 1 || len(problems) > 0 {
		t.Errorf("read back as %v, %v", requests, problems)
	}
	got, err = EncodeRequests(nil, since)
	if diff := cmp.Diff(map[string]any{ResourceRequestsAnnotation: nil, RequestedSinceAnnotation: nil}, got); diff != "" || err != nil {
		t.Errorf("%v; clearing (-want +got):\n%s", err, diff)
	}
}

func TestRequestsThatDoNotFitNameTheLimit(t *testing.T) {
	large := []raydemand.Request{{Bundle: raydemand.Bundle{strings.Repeat("x", MaxRequestsBytes): raydemand.One}, Count: 1}}
	if _, err := EncodeRequests(large, time.Time{}); !errors.Is(err, nodepool.ErrTooLarge) || !strings.Contains(err.Error(), "65536") {
		t.Errorf("error is %v, want ErrTooLarge with the limit", err)
	}
}
