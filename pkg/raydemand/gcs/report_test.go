package gcs

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func sentReports(t *testing.T, r *replay) []*autoscalerpb.AutoscalingState {
	t.Helper()
	var states []*autoscalerpb.AutoscalingState
	for _, c := range r.called("ReportAutoscalingState") {
		var request autoscalerpb.ReportAutoscalingStateRequest
		if err := proto.Unmarshal(c.request, &request); err != nil {
			t.Fatal(err)
		}
		states = append(states, request.GetAutoscalingState())
	}
	return states
}

// TestReportIsTheRecordedOne compares a report with the recorded one, except that it has one entry for each launching
// pod: `ray status` counts entries and ignores the count in them.
func TestReportIsTheRecordedOne(t *testing.T) {
	bytes, err := hex.DecodeString(recording(t, "2.60.0", "report.ReportAutoscalingState.binpb").Request)
	if err != nil {
		t.Fatal(err)
	}
	var want autoscalerpb.ReportAutoscalingStateRequest
	if err := proto.Unmarshal(bytes, &want); err != nil {
		t.Fatal(err)
	}
	launching := want.AutoscalingState.PendingInstanceRequests[0]
	launching.Count = 1
	want.AutoscalingState.PendingInstanceRequests = []*autoscalerpb.PendingInstanceRequest{launching, launching}

	r := newReplay(t)
	r.set("ReportAutoscalingState", answer{})
	client := dial(t, r, func(c *Config) { c.Now = func() time.Time { return time.UnixMilli(7) } })
	err = client.Report(t.Context(), raydemand.Report{
		Launching: []raydemand.Launching{{Group: "gpu-t4", Count: 2, Since: time.Unix(1700000000, 0)}},
		Starting:  []raydemand.Starting{{Group: "gpu-t4", Pod: "demo-gpu-t4-worker-k7m8n", Details: "ContainerCreating"}},
		Failed: []raydemand.FailedLaunch{{
			Group: "gpu-t4", Count: 1, Reason: "Unschedulable: 0/5 nodes", Start: time.Unix(1700000000, 0), Failed: time.Unix(1700000060, 0),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.AutoscalingState, sentReports(t, r)[0], protocmp.Transform()); diff != "" {
		t.Errorf("report (-recorded +ours):\n%s", diff)
	}
}

func TestReportNumbersNeverGoBack(t *testing.T) {
	r := newReplay(t)
	r.set("ReportAutoscalingState", answer{})
	clock := []int64{5000, 4000, 6000}
	client := dial(t, r, func(c *Config) {
		c.Now = func() time.Time { now := clock[0]; clock = clock[1:]; return time.UnixMilli(now) }
	})
	for range 3 {
		if err := client.Report(t.Context(), raydemand.Report{}); err != nil {
			t.Fatal(err)
		}
	}
	var got []int64
	for _, s := range sentReports(t, r) {
		got = append(got, s.GetAutoscalerStateVersion())
	}
	if diff := cmp.Diff([]int64{5000, 5000, 6000}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}
