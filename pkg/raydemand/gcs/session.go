package gcs

import (
	"context"
	"fmt"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// session is the data that does not change while a GCS process runs.
type session struct {
	name    string
	version int64
	// v1 is set if this head stores request_resources in the KV store. It is valid only if v1Known is set.
	v1, v1Known bool
	labels      map[raydemand.NodeID]map[string]string
}

// enterSession clears the session data if the head restarted. The session name is then new, or, with GCS fault
// tolerance, the name is the same and the version counter started again.
func (c *Client) enterSession(name string, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name != c.session.name || version < c.session.version {
		c.session = session{name: name}
	}
	c.session.version = version
}

// isV1 reports whether the head stores request_resources in the KV store. It reads the head's autoscaler flag and
// ignores the version of Ray: on a v2 head, Ray up to 2.52 writes the KV key too, and the sum of both would double the
// request. A head without the flag is older than v2, or has not written the flag yet, so isV1 caches only a flag that
// exists.
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

// missingLabels returns the labels of living nodes if the state has none (Ray 2.40). The labels of a node never change,
// so missingLabels reads the node table again only if the state has an unknown node.
func (c *Client) missingLabels(ctx context.Context,
	wire *autoscalerpb.ClusterResourceState) (map[raydemand.NodeID]map[string]string, error) {
	c.mu.Lock()
	cached, name := c.session.labels, c.session.name
	c.mu.Unlock()
	if !unlabelled(wire.GetNodeStates(), cached) {
		return cached, nil
	}
	// The request is empty, because the meaning of its filter fields differs between versions.
	reply := &raypb.GetAllNodeInfoReply{}
	if err := c.list(ctx, raypb.NodeInfoGcsService_GetAllNodeInfo_FullMethodName, &raypb.GetAllNodeInfoRequest{},
		reply); err != nil {
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
