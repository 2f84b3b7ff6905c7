package simray

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// cluster is the state of one session. It is a discrete event simulation without goroutines: advance moves it to a
// time, and everything it holds then is true at that time.
type cluster struct {
	options   Options
	session   string
	clusterID string
	version   int64
	nodes     []*node // in order of joining, dead ones included
	head      *node   // the head's own raylet, one of nodes
	work      []*work // in order of submission, all that is not over
	nextWork  WorkID
	ids       uint64
	kv        map[kvKey][]byte
	// constraint is nil when nobody has called, and may be empty.
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
	held      string    // why it counts as busy without work, empty when it does not
	idleSince time.Time // while nothing runs
	running   int
	drain     autoscalerpb.DrainNodeReason
	message   string
	deadline  int64 // Unix milliseconds
	dead      bool
	death     raypb.NodeDeathInfo_Reason
	activity  []string
}

// work is a task, an actor or a placement group. Its parts are placed together, except that a placement group which
// lost a node waits for its lost parts only.
type work struct {
	id        WorkID
	gangID    string // hex, of placement groups
	gang      Gang
	task      Task
	submitted time.Time
	parts     []part
	ends      time.Time // zero while it waits, or when it never ends
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

// joinHead lets the head's own raylet join; it is the first living node of the head group.
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

// restart forgets what a GCS with fault tolerance does not write to Redis.
func (c *cluster) restart(now time.Time) {
	c.version, c.constraint, c.report, c.reports = 0, nil, nil, 0
	c.die(c.head, raypb.NodeDeathInfo_UNEXPECTED_TERMINATION, "the head's container ended", now)
	c.joinHead(now)
}

// newID makes ids that differ within and between heads and repeat with the same options.
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

// die takes the node out at a time. Tasks on it wait again, actors are lost, placement groups wait for their lost
// bundles.
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
