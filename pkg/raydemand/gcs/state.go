package gcs

import (
	"context"
	"errors"
	"fmt"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// shapeCap is how many shapes one raylet reports (ray: max_resource_shapes_per_load_report); gangCap how many
// placement groups the GCS lists (ray: max_placement_group_load_report_size). The rest is silently missing.
const (
	shapeCap = 100
	gangCap  = 1000
)

// What a reading may hold at most, far beyond what Ray manages: a head that lies must not keep the planner busy for
// others. More nodes make the reading unusable, more demand is cut with a finding.
const (
	maxNodes   = 50_000
	maxShapes  = 20_000
	maxBundles = 100_000
)

// State reads the cluster once: one call, on a v1 head two, and on the first reading of a session a third for what
// does not change within it.
//
// Nodes are sorted by instance and id. A pod whose Ray container restarted is listed once per node id: join on the
// entry that is not Dead. What cannot be read is left out and is a Finding; the rest of the reading stands.
func (c *Client) State(ctx context.Context) (raydemand.State, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout) // the calls share it: a slow head costs one deadline
	defer cancel()
	// The version is always 0: one ahead of the server's counter kills the GCS (docs/reference/facts.md#state-version).
	reply, err := call(ctx, c, c.config.Timeout, "GetClusterResourceState",
		c.autoscaler.GetClusterResourceState, &autoscalerpb.GetClusterResourceStateRequest{})
	if err != nil {
		return raydemand.State{}, fmt.Errorf("reading Ray state: %w", err)
	}
	wire := reply.GetClusterResourceState()
	if wire == nil {
		return raydemand.State{}, fmt.Errorf("reading Ray state: %w: it holds no state", raydemand.ErrBadReply)
	}
	if nodes := len(wire.GetNodeStates()); nodes > maxNodes {
		return raydemand.State{}, fmt.Errorf("reading Ray state: %w: %d nodes, no cluster has more than %d",
			raydemand.ErrBadReply, nodes, maxNodes)
	}
	d := &decoder{}
	beside, err := c.readBeside(ctx, wire, d)
	if err != nil {
		return raydemand.State{}, fmt.Errorf("reading Ray state: %w", err)
	}
	return d.state(wire, beside), nil
}

// beside is what a reading needs and the state reply does not hold.
type beside struct {
	// v1 is set when request_resources lives in the KV store; sdkRequest is then its value, nil when absent.
	v1         bool
	sdkRequest []byte
	// labels are those of nodes that the state sent without, as Ray 2.40 does.
	labels map[raydemand.NodeID]map[string]string
}

func (c *Client) readBeside(ctx context.Context, wire *autoscalerpb.ClusterResourceState, d *decoder) (beside, error) {
	c.enterSession(wire.GetClusterSessionName(), wire.GetClusterResourceStateVersion())
	var b beside
	var err error
	if b.v1, err = c.isV1(ctx); err == nil && b.v1 {
		b.sdkRequest, _, err = c.kvGet(ctx, "", "autoscaler_resource_request")
	}
	if errors.Is(err, raydemand.ErrUnsupported) {
		d.missingMethod("InternalKVGet", "request_resources of Ray's SDK is read from the cluster state alone")
		b.v1, err = false, nil
	}
	if err != nil {
		return b, err
	}
	b.labels, err = c.missingLabels(ctx, wire)
	if errors.Is(err, raydemand.ErrUnsupported) {
		d.missingMethod("GetAllNodeInfo", "nodes are planned without their labels")
		err = nil
	}
	return b, err
}

// decoder turns wire values into ours and collects what it could not turn.
type decoder struct {
	findings
	// cut is set when demand beyond our own limits was left out.
	cut bool
}

func (d *decoder) cutDemand(field, seen, why string) {
	d.cut = true
	d.badValue("", field, seen, why)
}

func (d *decoder) state(wire *autoscalerpb.ClusterResourceState, b beside) raydemand.State {
	state := raydemand.State{
		Session: wire.GetClusterSessionName(),
		Version: wire.GetClusterResourceStateVersion(),
		Nodes:   d.nodes(wire.GetNodeStates(), b.labels),
		Demand: raydemand.Demand{
			Requests: d.requests("pending_resource_requests", wire.GetPendingResourceRequests()),
			Gangs:    d.gangs(wire.GetPendingGangResourceRequests()),
		},
	}
	if b.v1 {
		state.Demand.Constraint = d.sdkRequest(b.sdkRequest)
	} else {
		state.Demand.Constraint = d.constraint(wire.GetClusterResourceConstraints())
	}
	shapes, gangs := len(wire.GetPendingResourceRequests()), len(wire.GetPendingGangResourceRequests())
	if shapes >= shapeCap || gangs >= gangCap {
		state.Truncated = true
		d.truncated(shapes, gangs)
	}
	state.Truncated = state.Truncated || d.cut
	state.Findings = d.list()
	return state
}

// constraint reads what a v2 head holds for request_resources: the elements are one call's, so they add up.
func (d *decoder) constraint(wire []*autoscalerpb.ClusterResourceConstraint) []raydemand.Request {
	var all []*autoscalerpb.ResourceRequestByCount
	for _, c := range wire {
		all = append(all, c.GetResourceRequests()...)
	}
	return d.requests("cluster_resource_constraints", all)
}

// nodeInfoLabels reads the labels of the living nodes from the node table.
func nodeInfoLabels(list []*raypb.GcsNodeInfo) map[raydemand.NodeID]map[string]string {
	labels := make(map[raydemand.NodeID]map[string]string, len(list))
	for _, info := range list {
		id, err := raydemand.ParseNodeID(info.GetNodeId())
		if err == nil && info.GetState() == raypb.GcsNodeInfo_ALIVE {
			labels[id] = info.GetLabels()
		}
	}
	return labels
}
