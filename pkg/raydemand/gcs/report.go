package gcs

import (
	"context"
	"fmt"
	"time"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxLaunching is the maximum number of entries for one group. `ray status` counts entries, one for each pod, so a
// large group needs many. More than this number is of no use to readers.
const maxLaunching = 1000

// Report sends the GCS what `ray status` shows in that cluster. The version of a report is the time in Unix
// milliseconds, so it still increases after Heliostat restarts. The GCS ignores lower versions. Call Report about every
// 5 s, as Ray does.
func (c *Client) Report(ctx context.Context, report raydemand.Report) error {
	state := encodeReport(report, c.nextReport(time.Now()))
	request := &autoscalerpb.ReportAutoscalingStateRequest{AutoscalingState: state}
	if err := c.call(ctx, c.config.Timeout, autoscalerpb.AutoscalerStateService_ReportAutoscalingState_FullMethodName,
		request, &autoscalerpb.ReportAutoscalingStateReply{}); err != nil {
		return fmt.Errorf("reporting to Ray: %w", err)
	}
	return nil
}

// nextReport returns the next version. It increases even if the clock goes back, because the GCS silently ignores lower
// versions.
func (c *Client) nextReport(now time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastReport = max(c.lastReport, now.UnixMilli())
	return c.lastReport
}

func encodeReport(report raydemand.Report, version int64) *autoscalerpb.AutoscalingState {
	state := &autoscalerpb.AutoscalingState{AutoscalerStateVersion: version}
	for _, l := range report.Launching {
		for range min(l.Count, maxLaunching) {
			state.PendingInstanceRequests = append(state.PendingInstanceRequests, &autoscalerpb.PendingInstanceRequest{
				RayNodeTypeName: l.Group, Count: 1, RequestTs: l.Since.Unix(),
			})
		}
	}
	for _, s := range report.Starting {
		state.PendingInstances = append(state.PendingInstances, &autoscalerpb.PendingInstance{
			RayNodeTypeName: s.Group, InstanceId: s.Pod, IpAddress: s.IP, Details: s.Details,
		})
	}
	for _, f := range report.Failed {
		state.FailedInstanceRequests = append(state.FailedInstanceRequests, &autoscalerpb.FailedInstanceRequest{
			RayNodeTypeName: f.Group, Count: 1, Reason: f.Reason, StartTs: f.At.Unix(), FailedTs: f.At.Unix(),
		})
	}
	return state
}
