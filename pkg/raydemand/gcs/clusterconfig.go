package gcs

import (
	"context"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxClusterConfig bounds the bytes of a cluster config: 1 MiB holds some 8,000 groups. Every driver of Ray Data reads
// it back every few seconds.
const maxClusterConfig = 1 << 20

// ReportClusterConfig replaces the cluster config that the GCS keeps for Ray's libraries. It fails with
// raydemand.ErrUnsupported on a head older than Ray 2.41.
func (c *Client) ReportClusterConfig(ctx context.Context, config raydemand.ClusterConfig) error {
	request := &autoscalerpb.ReportClusterConfigRequest{ClusterConfig: encodeClusterConfig(config)}
	if size := proto.Size(request); size > maxClusterConfig {
		return fmt.Errorf("reporting the cluster config to Ray: %d groups take %d bytes, at most %d are sent",
			len(config.Groups), size, maxClusterConfig)
	}
	_, err := call(ctx, c, c.config.Timeout, "ReportClusterConfig", c.autoscaler.ReportClusterConfig, request)
	if err != nil {
		return fmt.Errorf("reporting the cluster config to Ray: %w", err)
	}
	return nil
}

func encodeClusterConfig(config raydemand.ClusterConfig) *autoscalerpb.ClusterConfig {
	wire := &autoscalerpb.ClusterConfig{}
	for _, g := range config.Groups {
		wire.NodeGroupConfigs = append(wire.NodeGroupConfigs, &autoscalerpb.NodeGroupConfig{
			Name: g.Name, Resources: encodeNodeResources(g),
			MinCount: uint32(min(max(g.Min, 0), math.MaxUint32)), MaxCount: encodeMaxCount(g.Max),
		})
	}
	return wire
}

// encodeMaxCount writes KubeRay's default for a missing maximum, 2147483647, as no limit: that is what it means.
func encodeMaxCount(most int) int32 {
	if most < 0 || most >= math.MaxInt32 {
		return raydemand.Unlimited
	}
	return int32(most)
}

// encodeNodeResources writes whole units, which is all that the message holds. Ray Data asks for nodes with the CPUs,
// GPUs and memory that stand here, so these are rounded down to what a node can serve. Of other resources Ray Train
// only tests whether enough could come, so these are rounded up.
//
// A group of a fixed number of nodes keeps its memory as it is: nobody can ask for more of them, and Ray Data knows the
// head's entry by its exact shape.
func encodeNodeResources(g raydemand.NodeGroup) map[string]uint64 {
	wire := make(map[string]uint64, len(g.Resources))
	for name, amount := range g.Resources {
		if amount < 0 {
			continue
		}
		units := uint64(amount / raydemand.One)
		switch name {
		case raydemand.CPU, raydemand.GPU:
		case raydemand.Memory:
			if g.Min != g.Max {
				units = askableMemory(units)
			}
		default:
			units = uint64((amount-1)/raydemand.One) + 1
			if amount == 0 {
				units = 0
			}
		}
		wire[name] = units
	}
	return wire
}

// askableMemory returns the bytes to report for a node that has the given bytes. Ray Data rounds memory to the nearest
// tenth of a GiB before it asks for a node (ray: default_cluster_autoscaler_v2.py, _NodeResourceSpec.of). Where that is
// more than the node has, it would ask for a node that no group has. So the tenth below is reported then.
func askableMemory(bytes uint64) uint64 {
	const gib = 1 << 30
	tenths := math.RoundToEven(float64(bytes) / gib * 10)
	if asked := uint64(tenths / 10 * gib); asked <= bytes {
		return bytes
	}
	return uint64((tenths - 1) / 10 * gib)
}
