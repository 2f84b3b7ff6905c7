package gcs

import (
	"context"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxClusterConfig is the maximum size of a cluster config in bytes. 1 MiB is enough for about 8,000 groups. Every Ray
// Data driver reads the config every few seconds.
const maxClusterConfig = 1 << 20

// ReportClusterConfig replaces the cluster config that the GCS stores for Ray's libraries. It returns
// raydemand.ErrUnsupported if the head is older than Ray 2.41.
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

// encodeMaxCount encodes a maximum number of nodes. 2147483647, which is KubeRay's default for a missing maximum, means
// no limit.
func encodeMaxCount(most int) int32 {
	if most < 0 || most >= math.MaxInt32 {
		return raydemand.Unlimited
	}
	return int32(most)
}

// encodeNodeResources encodes resources in whole units, because the message has only integers. Ray Data requests nodes
// with the CPUs, GPUs and memory reported here, so these are rounded down to what a node has. For other resources, Ray
// Train only checks that the cluster can have enough, so these are rounded up.
//
// If the number of nodes in a group is fixed, the memory is not rounded. Ray Data cannot request more of these nodes,
// and it finds the head's entry by its exact shape.
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

// askableMemory returns the memory to report, in bytes, for a node with the given memory. Before Ray Data requests a
// node, it rounds memory to the nearest tenth of a GiB (ray: default_cluster_autoscaler_v2.py, _NodeResourceSpec.of).
// If it rounds up, no group has such a node. In this case, askableMemory returns the next lower tenth.
func askableMemory(bytes uint64) uint64 {
	const gib = 1 << 30
	tenths := math.RoundToEven(float64(bytes) / gib * 10)
	if asked := uint64(tenths / 10 * gib); asked <= bytes {
		return bytes
	}
	return uint64((tenths - 1) / 10 * gib)
}
