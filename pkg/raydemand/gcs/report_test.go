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

// TestReportIsTheRecordedOne compares a report with the recorded one, except that it has one entry for each launching
// pod: `ray status` counts entries and ignores the count in them.
func TestReportIsTheRecordedOne(t *testing.T) {
	bytes, err := hex.DecodeString(recording(t, "2.60.0", "report.ReportAutoscalingState.binpb").Request)
	must(t, err)
	var want autoscalerpb.ReportAutoscalingStateRequest
	must(t, proto.Unmarshal(bytes, &want))
	launching := want.AutoscalingState.PendingInstanceRequests[0]
	launching.Count = 1
	want.AutoscalingState.PendingInstanceRequests = []*autoscalerpb.PendingInstanceRequest{launching, launching}

	failed := want.AutoscalingState.FailedInstanceRequests[0]
	failed.StartTs = failed.FailedTs
	got := encodeReport(raydemand.Report{
		Launching: []raydemand.Launching{{Group: "gpu-t4", Count: 2, Since: time.Unix(1700000000, 0)}},
		Starting:  []raydemand.Starting{{Group: "gpu-t4", Pod: "demo-gpu-t4-worker-k7m8n", Details: "ContainerCreating"}},
		Failed:    []raydemand.FailedLaunch{{Group: "gpu-t4", Reason: "Unschedulable: 0/5 nodes", At: time.Unix(1700000060, 0)}},
	}, 7)
	if diff := cmp.Diff(want.AutoscalingState, got, protocmp.Transform()); diff != "" {
		t.Errorf("report (-recorded +ours):\n%s", diff)
	}
}

func TestReportNumbersNeverGoBack(t *testing.T) {
	var c Client
	for _, step := range [][2]int64{{5000, 5000}, {4000, 5000}, {6000, 6000}} {
		if got := c.nextReport(time.UnixMilli(step[0])); got != step[1] {
			t.Errorf("at %d the version is %d, want %d", step[0], got, step[1])
		}
	}
}
