package simray

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// cluster is the state of one session. It is a discrete event simulation without goroutines: advance computes the state
// at a given time.
type cluster struct {
	options   Options
	session   string
	clusterID string
	version   int64
	longest   int     // the room for a reply that has all of the longest state so far, in bytes
	nodes     []*node // in order of joining, including dead nodes
	head      *node   // the head's own raylet, one of nodes
	work      []*work // in order of submission, all that is not over
	nextWork  WorkID
	drivers   []*driver
	ids       uint64
	kv        map[kvKey][]byte
	// constraint is nil before the first call, and can be empty.
	constraint *autoscalerpb.ClusterResourceConstraint
	report     *autoscalerpb.AutoscalingState
	reports    int
	lost       int
}

// node is a raylet.
type node struct {
	Node
	id        raydemand.NodeID
	free      raydemand.Bundle
	held      string    // why the node is busy without work; empty if it is not
	idleSince time.Time // valid while nothing runs
	running   int
	drain     autoscalerpb.DrainNodeReason
	message   string
	deadline  int64 // Unix milliseconds
	dead      bool
	death     raypb.NodeDeathInfo_Reason
	activity  []string
	// encoded is the wire form of what changes only with free and activity; nil if that has changed.
	encoded []byte
}

// work is a task, an actor or a placement group. All its parts are placed together. If a placement group loses a node,
// only the lost parts are pending again.
type work struct {
	id        WorkID
	gangID    string // in hex; only for placement groups
	gang      Gang
	task      Task
	submitted time.Time
	parts     []part
	ends      time.Time // zero while the work is pending, or if it runs until Cancel
	preempted bool
	over      bool
	actorID   raydemand.NodeID
}

type part struct {
	bundle   raydemand.Bundle
	selector []raydemand.Selector
	on       *node
}

func (w *work) waiting() bool {
	for _, p := range w.parts {
		if p.on == nil {
			return true
		}
	}
	return false
}

func newCluster(options Options, start int) *cluster {
	c := &cluster{options: options, kv: map[kvKey][]byte{}}
	now := options.Clock.Now()
	c.session = fmt.Sprintf("session_%s_%06d_%d", now.UTC().Format("2006-01-02_15-04-05"), now.Nanosecond()/1000, start)
	id := c.newID(options.Address + c.session)
	c.clusterID = id.String()
	c.startKV()
	c.joinHead(now)
	return c
}

// joinHead adds the head's own raylet. It is the first living node of the head group.
func (c *cluster) joinHead(now time.Time) {
	head := c.options.Head
	if head.Instance == "" {
		head.Instance = "head"
	}
	if head.Group == "" {
		head.Group = "headgroup"
	}
	if head.IP == "" {
		head.IP = "127.0.0.1"
	}
	head.Resources = head.Resources.Clone()
	if head.Resources == nil {
		head.Resources = raydemand.Bundle{}
	}
	head.Resources["node:__internal_head__"] = raydemand.One
	c.head = c.join(head, now)
}

// restart drops the data that a GCS with fault tolerance does not write to Redis.
func (c *cluster) restart(now time.Time) {
	c.version, c.constraint, c.report, c.reports = 0, nil, nil, 0
	c.die(c.head, raypb.NodeDeathInfo_UNEXPECTED_TERMINATION, "the head's container ended", now)
	c.joinHead(now)
}

// newID returns an id that is unique within and between heads. The same options produce the same ids.
func (c *cluster) newID(seed string) raydemand.NodeID {
	c.ids++
	return idOf(fmt.Sprintf("%s/%s/%d", c.session, seed, c.ids))
}

func (c *cluster) join(spec Node, now time.Time) *node {
	if spec.IP == "" {
		spec.IP = fmt.Sprintf("127.%d.%d.%d", 1+len(c.nodes)>>16&0x7f, len(c.nodes)>>8&0xff, len(c.nodes)&0xff)
	}
	n := &node{Node: spec, id: c.newID(spec.Instance), idleSince: now}
	n.Resources = spec.Resources.Clone()
	if n.Resources == nil {
		n.Resources = raydemand.Bundle{}
	}
	n.Resources["node:"+spec.IP] = raydemand.One
	n.free = n.Resources.Clone()
	labels := map[string]string{}
	for key, value := range spec.Labels {
		labels[key] = value
	}
	if c.options.Version.hasLabels() {
		labels["ray.io/node-id"] = n.id.String()
		labels["ray.io/node-group"] = spec.Group
	} else {
		labels["ray.io/node_id"] = n.id.String()
	}
	n.Labels = labels
	c.nodes = append(c.nodes, n)
	return n
}

func (c *cluster) find(id []byte) *node {
	for _, n := range c.nodes {
		if string(n.id[:]) == string(id) {
			return n
		}
	}
	return nil
}

func (n *node) busy() bool { return n.running > 0 || n.held != "" }

// die marks a node as dead at a given time. Its tasks are pending again, its actors are lost, and its placement groups
// wait for their lost bundles.
func (c *cluster) die(n *node, reason raypb.NodeDeathInfo_Reason, message string, now time.Time) {
	if n.dead {
		return
	}
	n.dead, n.death, n.message = true, reason, message
	for _, w := range c.work {
		if w.over {
			continue
		}
		for i := range w.parts {
			if w.parts[i].on != n {
				continue
			}
			c.lost++
			w.parts[i].on = nil
			w.ends = time.Time{}
			if w.task.Actor {
				c.finish(w, now)
			}
		}
	}
}
