package conformance

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/simray"
)

func reports(t *testing.T, h head) {
	if err := h.ours.Report(t.Context(), raydemand.Report{
		Launching: []raydemand.Launching{{Group: "gpu", Count: 2, Since: time.Unix(1700000000, 0)}},
		Starting:  []raydemand.Starting{{Group: "gpu", Pod: "conf-gpu-worker-z", Details: "ContainerCreating"}},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.autoscaler.ReportAutoscalingState(t.Context(), &autoscalerpb.ReportAutoscalingStateRequest{
		AutoscalingState: &autoscalerpb.AutoscalingState{AutoscalerStateVersion: 3},
	}); err != nil {
		t.Fatal(err)
	}
	reply, err := h.autoscaler.GetClusterStatus(t.Context(), &autoscalerpb.GetClusterStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got := reply.GetAutoscalingState()
	if len(got.GetPendingInstanceRequests()) != 2 || len(got.GetPendingInstances()) != 1 ||
		got.GetAutoscalerStateVersion() < 1e12 {
		t.Errorf("the status shows %v, want our report: two launches and a pod", got)
	}
}

func refusals(t *testing.T, h head) {
	miss, err := h.kv.InternalKVGet(t.Context(), &raypb.InternalKVGetRequest{Key: []byte("no_such_key")})
	if err != nil || miss.GetStatus().GetCode() != 17 {
		t.Errorf("missing key: %v, %v, want status code 17", miss, err)
	}
	unknown := []string{"/ray.rpc.autoscaler.AutoscalerStateService/NoSuchMethod", "/ray.rpc.NoSuchService/Get"}
	for _, method := range unknown {
		err := h.conn.Invoke(t.Context(), method, &raypb.GetClusterIdRequest{}, &raypb.GetClusterIdReply{})
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v, want UNIMPLEMENTED", method, err)
		}
	}
	wrong := metadata.AppendToOutgoingContext(t.Context(), "ray_cluster_id",
		"abababababababababababababababababababababababababababab")
	var trailer metadata.MD
	_, err = h.autoscaler.GetClusterResourceState(wrong, &autoscalerpb.GetClusterResourceStateRequest{},
		grpc.Trailer(&trailer))
	code, message := codes.Unauthenticated, status.Convert(err).Message()
	if h.Version() == simray.Ray240 {
		code = codes.Aborted
		if details := trailer.Get("grpc-status-details-bin"); len(details) > 0 {
			message = details[0]
		}
	}
	if status.Code(err) != code ||
		message != "WrongClusterID: Perhaps the client is accessing GCS after it has restarted." {
		t.Errorf("wrong cluster id: %v (%q), want %s", err, message, code)
	}
	id, err := h.nodes.GetClusterId(t.Context(), &raypb.GetClusterIdRequest{})
	if err != nil || len(id.GetClusterId()) != 28 {
		t.Errorf("cluster id %x, %v, want 28 bytes", id.GetClusterId(), err)
	}
}

func restart(t *testing.T, h head) {
	before := h.state(t)
	h.Restart(t)
	h.eventually(t, func() string {
		after, err := h.ours.State(t.Context())
		switch {
		case errors.Is(err, raydemand.ErrUnavailable):
			return err.Error()
		case err != nil:
			t.Fatal(err)
		case after.Session == before.Session:
			return "same session"
		case after.Version >= before.Version && before.Version > 50:
			t.Errorf("version %d after %d: it starts again", after.Version, before.Version)
		}
		return ""
	})
}

func fatal(t *testing.T, h head) {
	_, err := h.autoscaler.GetClusterResourceState(t.Context(),
		&autoscalerpb.GetClusterResourceStateRequest{LastSeenClusterResourceStateVersion: 1 << 40})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("version ahead of the counter: %v, want UNAVAILABLE", err)
	}
	h.eventually(t, func() string {
		if _, err := h.ours.State(t.Context()); !errors.Is(err, raydemand.ErrUnavailable) {
			return "the head still answers"
		}
		return ""
	})
}
