package gcs

import (
	"context"
	"fmt"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// session is what stays the same as long as one GCS process lives.
type session struct {
	name    string
	version int64
	// v1 counts when v1Known: where this head keeps request_resources.
	v1, v1Known bool
	labels      map[raydemand.NodeID]map[string]string
}

// enterSession forgets everything when the head is another one: a new session name, or, with GCS fault tolerance, the
// same name and a version counter that started again.
func (c *Client) enterSession(name string, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name != c.session.name || version < c.session.version {
		c.session = session{name: name}
	}
	c.session.version = version
}

// isV1 tells where request_resources lives. The head itself says which autoscaler it believes in, whatever its
// version: on a v2 head Ray up to 2.52 writes the KV key too, and adding both would double the request. A head
// without the flag is older than v2, or has not written it yet: only a flag that was found is remembered.
func (c *Client) isV1(ctx context.Context) (bool, error) {
	c.mu.Lock()
	known, v1, name := c.session.v1Known, c.session.v1, c.session.name
	c.mu.Unlock()
	if known {
		return v1, nil
	}
	value, found, err := c.kvGet(ctx, "__autoscaler", "__autoscaler_v2_enabled")
	if err != nil {
		return false, fmt.Errorf("asking for the head's autoscaler version: %w", err)
	}
	v1 = !found || string(value) != "1"
	c.mu.Lock()
	defer c.mu.Unlock()
	if found && c.session.name == name {
		c.session.v1, c.session.v1Known = v1, true
	}
	return v1, nil
}

// missingLabels returns labels for living nodes that the state sent without (Ray 2.40). A node's labels never change,
// so the node table is read again only when an unknown node appears.
func (c *Client) missingLabels(ctx context.Context,
	wire *autoscalerpb.ClusterResourceState) (map[raydemand.NodeID]map[string]string, error) {
	c.mu.Lock()
	cached, name := c.session.labels, c.session.name
	c.mu.Unlock()
	if !unlabelled(wire.GetNodeStates(), cached) {
		return cached, nil
	}
	// The request stays empty: its filter fields mean different things in different versions.
	reply, err := call(ctx, c, c.config.Timeout, "GetAllNodeInfo", c.nodes.GetAllNodeInfo,
		&raypb.GetAllNodeInfoRequest{})
	if err != nil {
		return nil, fmt.Errorf("reading node labels: %w", err)
	}
	if err := statusError("GetAllNodeInfo", reply.GetStatus()); err != nil {
		return nil, fmt.Errorf("reading node labels: %w", err)
	}
	labels := nodeInfoLabels(reply.GetNodeInfoList())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.name == name {
		c.session.labels = labels
	}
	return labels, nil
}

func unlabelled(nodes []*autoscalerpb.NodeState, known map[raydemand.NodeID]map[string]string) bool {
	for _, n := range nodes {
		if len(n.GetLabels()) > 0 || n.GetStatus() == autoscalerpb.NodeStatus_DEAD {
			continue
		}
		if id, err := raydemand.ParseNodeID(n.GetNodeId()); err == nil && known[id] == nil {
			return true
		}
	}
	return false
}
