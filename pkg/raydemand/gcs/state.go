package gcs

import (
	"context"
	"fmt"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// shapeCap is the maximum number of shapes that one raylet reports (ray: max_resource_shapes_per_load_report). gangCap
// is the maximum number of placement groups that the GCS lists (ray: max_placement_group_load_report_size). Ray
// silently omits the rest.
const (
	shapeCap = 100
	gangCap  = 1000
)

// Limits of one State. They are far higher than what Ray supports, and prevent a faulty head from delaying the planning
// for other clusters. If there are too many nodes, State returns an error. If there is too much demand, State truncates
// it and adds a finding.
const (
	maxNodes   = 50_000
	maxShapes  = 20_000
	maxBundles = 100_000
)

// State reads the state of the cluster. It makes one call, or two on a v1 head. The first State of a session makes one
// more call, for data that does not change in a session.
//
// State sorts nodes by instance and id. After the Ray container of a pod restarts, the pod has one entry for each node
// id: use the entry that is not Dead. State omits invalid entries and reports them as Findings.
//
// A reply that repeats the one before in all but versions and idle times is not decoded: then State shares everything
// but the nodes' idle times with the state before. Callers must not change a State.
func (c *Client) State(ctx context.Context) (raydemand.State, error) { return c.state(ctx, 0) }

// Repeats is State without Nodes if the state has this fingerprint, which must not be 0. It costs less.
func (c *Client) Repeats(ctx context.Context, fingerprint uint64) (raydemand.State, error) {
	return c.state(ctx, fingerprint)
}

// state reads the state, without nodes if its fingerprint is known.
func (c *Client) state(ctx context.Context, known uint64) (raydemand.State, error) {
	ctx, cancel := within(ctx, c.config.Timeout) // all calls share one timeout
	defer cancel()
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	bare := last != nil && last.state.Fingerprint == known
	reply := &stateReply{bare: bare, last: last}
	err := c.readState(ctx, reply)
	if err == nil && reply.message == nil {
		state, repeated, failed := c.repeated(ctx, last, reply, known)
		if failed != nil {
			return raydemand.State{}, fmt.Errorf("reading Ray state: %w", failed)
		}
		if repeated {
			return state, nil
		}
		reply = &stateReply{}
		err = c.readState(ctx, reply)
	}
	if err != nil {
		return raydemand.State{}, fmt.Errorf("reading Ray state: %w", err)
	}
	wire := reply.message.GetClusterResourceState()
	if wire == nil {
		return raydemand.State{}, fmt.Errorf("reading Ray state: %w: it holds no state", raydemand.ErrBadReply)
	}
	if nodes := len(wire.GetNodeStates()); nodes > maxNodes {
		return raydemand.State{}, fmt.Errorf("reading Ray state: %w: %d nodes, no cluster has more than %d",
			raydemand.ErrBadReply, nodes, maxNodes)
	}
	beside, err := c.readBeside(ctx, wire)
	if err != nil {
		return raydemand.State{}, fmt.Errorf("reading Ray state: %w", err)
	}
	state := (&decoder{}).state(wire, beside)
	state.Fingerprint = c.remember(reply, state, beside)
	return state, nil
}

// beside is the data that State needs in addition to the state reply.
type beside struct {
	// v1 is set if the KV store holds request_resources. sdkRequest is then its value, or nil if the key is missing.
	v1         bool
	sdkRequest []byte
	// labels are the labels of nodes that have none in the state, as with Ray 2.40.
	labels map[raydemand.NodeID]map[string]string
}

func (c *Client) readBeside(ctx context.Context, wire *autoscalerpb.ClusterResourceState) (beside, error) {
	c.enterSession(wire.GetClusterSessionName(), wire.GetClusterResourceStateVersion())
	var b beside
	var err error
	if b.v1, b.sdkRequest, err = c.v1Request(ctx); err != nil {
		return b, err
	}
	b.labels, err = c.missingLabels(ctx, wire)
	return b, err
}

// v1Request reads request_resources from the KV store if the head is a v1 head.
func (c *Client) v1Request(ctx context.Context) (v1 bool, request []byte, err error) {
	if v1, err = c.isV1(ctx); err == nil && v1 {
		request, _, err = c.kvGet(ctx, "", "autoscaler_resource_request")
	}
	return v1, request, err
}

// decoder converts messages of Ray to types of raydemand, and adds findings for invalid values.
type decoder struct {
	findings
	// cut is set if the demand exceeds the limits of this package.
	cut bool
	// texts are those that the nodes of the state share, by themselves.
	texts map[string]string
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
	if state.Truncated = shapes >= shapeCap || gangs >= gangCap || d.cut; state.Truncated {
		d.truncated(shapes, gangs)
	}
	state.Findings = d.findings
	return state
}

// constraint decodes the request_resources of a v2 head. The elements belong to one call, so they add up.
func (d *decoder) constraint(wire []*autoscalerpb.ClusterResourceConstraint) []raydemand.Request {
	var all []*autoscalerpb.ResourceRequestByCount
	for _, c := range wire {
		all = append(all, c.GetResourceRequests()...)
	}
	return d.requests("cluster_resource_constraints", all)
}

// nodeInfoLabels returns the labels of living nodes from the node table.
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
