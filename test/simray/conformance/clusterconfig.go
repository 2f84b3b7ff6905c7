package conformance

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/simray"
)

// clusterConfigs leaves a cluster config on the head. A restart without fault tolerance deletes it.
func clusterConfigs(t *testing.T, h head) {
	if config := h.clusterConfig(t); config != nil {
		t.Errorf("the head begins with the cluster config %v, want none", config)
	}
	err := h.ours.ReportClusterConfig(t.Context(), raydemand.ClusterConfig{Groups: []raydemand.NodeGroup{
		{Name: "cpu", Resources: raydemand.Bundle{"CPU": raydemand.Whole(4)}, Min: 1, Max: raydemand.Unlimited},
	}})
	if h.Version() == simray.Ray240 {
		if !errors.Is(err, raydemand.ErrUnsupported) {
			t.Errorf("ReportClusterConfig: %v, want ErrUnsupported", err)
		}
		if config := h.clusterConfig(t); config != nil {
			t.Errorf("the head keeps the cluster config %v, want none", config)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := h.ours.ReportClusterConfig(t.Context(), raydemand.ClusterConfig{Groups: []raydemand.NodeGroup{
		{Name: "gpu", Resources: raydemand.Bundle{"CPU": raydemand.Whole(2), "GPU": raydemand.One,
			"memory": raydemand.Whole(1 << 30)}, Max: 2},
	}}); err != nil {
		t.Fatal(err)
	}
	want := &autoscalerpb.ClusterConfig{NodeGroupConfigs: []*autoscalerpb.NodeGroupConfig{
		{Name: "gpu", Resources: map[string]uint64{"CPU": 2, "GPU": 1, "memory": 1 << 30}, MaxCount: 2},
	}}
	if diff := cmp.Diff(want, h.clusterConfig(t), protocmp.Transform()); diff != "" {
		t.Errorf("cluster config (-the last report +kept):\n%s", diff)
	}
}

// clusterConfig reads the cluster config from the same key as Ray's libraries (ray: python/ray/_private/state.py,
// get_cluster_config). It returns nil if there is none.
func (h head) clusterConfig(t *testing.T) *autoscalerpb.ClusterConfig {
	t.Helper()
	reply, err := h.kv.InternalKVGet(t.Context(), &raypb.InternalKVGetRequest{
		Namespace: []byte("__autoscaler"), Key: []byte("__autoscaler_cluster_config"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if reply.GetStatus().GetCode() == 17 {
		return nil
	}
	config := &autoscalerpb.ClusterConfig{}
	if err := proto.Unmarshal(reply.GetValue(), config); err != nil {
		t.Fatal(err)
	}
	return config
}
