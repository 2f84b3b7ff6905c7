package gcs

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestClusterConfigOnTheWire(t *testing.T) {
	r := newReplay(t)
	r.set("ReportClusterConfig", answer{})
	err := dial(t, r).ReportClusterConfig(t.Context(), raydemand.ClusterConfig{Groups: []raydemand.NodeGroup{
		{Name: "headgroup", Resources: raydemand.Bundle{"CPU": 0, "memory": raydemand.Whole(1500 << 20)}, Min: 1, Max: 1},
		{Name: "gpu", Max: 8, Min: 2, Resources: raydemand.Bundle{
			"CPU": raydemand.Whole(4) + raydemand.One/2, "GPU": raydemand.One, "memory": raydemand.Whole(16 << 30), "half": raydemand.One / 2, "tpu": raydemand.Whole(4),
		}},
		{Name: "no limit", Max: raydemand.Unlimited, Resources: raydemand.Bundle{"memory": raydemand.Whole(1500 << 20)}},
		{Name: "KubeRay's default", Max: math.MaxInt32},
		{Name: "hosts beyond an int32", Max: 1 << 40},
	}})
	if err != nil {
		t.Fatal(err)
	}
	calls := r.called("ReportClusterConfig")
	if len(calls) != 1 {
		t.Fatalf("%d calls, want 1", len(calls))
	}
	var got autoscalerpb.ReportClusterConfigRequest
	if err := proto.Unmarshal(calls[0].request, &got); err != nil {
		t.Fatal(err)
	}
	want := &autoscalerpb.ReportClusterConfigRequest{ClusterConfig: &autoscalerpb.ClusterConfig{NodeGroupConfigs: []*autoscalerpb.NodeGroupConfig{
		{Name: "headgroup", Resources: map[string]uint64{"CPU": 0, "memory": 1500 << 20}, MinCount: 1, MaxCount: 1},
		{Name: "gpu", MinCount: 2, MaxCount: 8, Resources: map[string]uint64{"CPU": 4, "GPU": 1, "memory": 16 << 30, "half": 1, "tpu": 4}},
		{Name: "no limit", MaxCount: -1, Resources: map[string]uint64{"memory": 1_503_238_553}},
		{Name: "KubeRay's default", MaxCount: -1},
		{Name: "hosts beyond an int32", MaxCount: -1},
	}}}
	if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
		t.Errorf("request (-want +sent):\n%s", diff)
	}
}

// TestMemoryIsReportedSoThatWhatRayDataAsksForFits rounds the reported memory as Ray Data does before it requests a
// node.
func TestMemoryIsReportedSoThatWhatRayDataAsksForFits(t *testing.T) {
	const gib = 1 << 30
	asked := func(bytes uint64) uint64 { return uint64(math.RoundToEven(float64(bytes)/gib*10) / 10 * gib) }
	for _, c := range []struct{ has, want uint64 }{
		{has: 0, want: 0},
		{has: 16 * gib, want: 16 * gib},               // a whole number does not change
		{has: 1500 << 20, want: 1_503_238_553},        // 1.46 GiB: Ray Data would request 1.5
		{has: 1450 << 20, want: 1450 << 20},           // 1.42 GiB: Ray Data requests 1.4
		{has: 40 << 20, want: 40 << 20},               // Ray Data requests 0
		{has: 60 << 20, want: 0},                      // Ray Data would request 0.1
		{has: 3*gib + gib/2 - 1, want: 3_650_722_201}, // one byte below 3.5
	} {
		got := askableMemory(c.has)
		if got != c.want || asked(got) > c.has {
			t.Errorf("a node with %d bytes is reported with %d, of which Ray Data asks for %d; want %d", c.has, got, asked(got), c.want)
		}
	}
}

func TestAClusterConfigIsBounded(t *testing.T) {
	r := newReplay(t)
	r.set("ReportClusterConfig", answer{})
	var config raydemand.ClusterConfig
	for i := range 20_000 {
		config.Groups = append(config.Groups, raydemand.NodeGroup{
			Name: fmt.Sprintf("%s-%d", strings.Repeat("g", 50), i), Resources: raydemand.Bundle{"CPU": raydemand.One}, Max: 1,
		})
	}
	err := dial(t, r).ReportClusterConfig(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), "20000 groups") || len(r.called("ReportClusterConfig")) != 0 {
		t.Errorf("error %v after %d calls, want one that names the 20000 groups, and no call", err, len(r.called("ReportClusterConfig")))
	}
}

func TestAnOldHeadTakesNoClusterConfig(t *testing.T) {
	r := newReplay(t)
	r.set("ReportClusterConfig", answer{code: codes.Unimplemented})
	if err := dial(t, r).ReportClusterConfig(t.Context(), raydemand.ClusterConfig{}); !errors.Is(err, raydemand.ErrUnsupported) {
		t.Errorf("ReportClusterConfig: %v, want ErrUnsupported", err)
	}
}
