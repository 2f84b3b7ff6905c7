package raylabels

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// place is a kind of nodes that may hold a new pod.
type place struct {
	// name is for sentences: node a, or pool b.
	name   string
	labels map[string]string
	// requirements are the possible values of other labels, by Karpenter's template.
	requirements []landing.Requirement
	// open: the nodes may have labels that are not listed here. declared: they are the shape or template of a pool.
	open, declared bool
	gpus           sharing.GPUs
}

// placeList is all places of a group's new pods.
type placeList struct {
	pod *landing.PodShape
	all []place
	// mapped are the labels of nodes that Ray nodes have under another name.
	mapped []sharing.TopologyLabel
}

// placesOf lists the nodes and shapes that could hold a pod, and the pools that may add nodes that nothing describes.
// New nodes of a pool are like those that it has, as the Cluster Autoscaler assumes too.
func placesOf(reader sharing.Reader, w Worker, nodes Nodes) placeList {
	pod := w.Pod
	list := placeList{pod: pod, mapped: reader.TopologyLabels}
	read := labelsRead(reader, w)
	described := map[string]bool{}
	for _, node := range pod.FittingNodes(nodes.Places) {
		described[node.PoolName()] = true
		found := place{name: nameOf(node), labels: node.Labels, declared: node.Declared,
			gpus: landing.ReadNode(reader, node)}
		if !node.Declared {
			found.labels = read.of(node.Labels)
		}
		list.add(found)
	}
	for i := range nodes.Pods {
		pool := &nodes.Pods[i]
		template := templateOf(nodes.Rooms, pool.Pool)
		if pool.MayAddPods != nil && *pool.MayAddPods == 0 || template == nil && described[pool.Pool] {
			continue
		}
		added := place{name: "new nodes of pool " + pool.Pool, open: true}
		if template != nil {
			added.labels, added.requirements, added.declared = template.Labels, template.Requirements, true
		}
		list.add(added.read(reader, pod))
	}
	if len(list.all) == 0 {
		list.add(place{name: "nodes that are not known yet", open: true}.read(reader, pod))
	}
	return list
}

// keys are the labels of nodes that some Ray label may come from. Of a thousand nodes, few kinds differ in them.
type keys map[string]bool

func labelsRead(reader sharing.Reader, w Worker) keys {
	read := keys{amdDevice: true, gkeAccelerator: true, gkeTopology: true}
	for _, key := range productLabels {
		read[key] = true
	}
	for _, row := range reader.TopologyLabels {
		read[row.Node] = true
	}
	for _, row := range ownLabels {
		for _, key := range row.nodeLabels {
			read[key] = true
		}
	}
	for _, from := range w.Sources {
		read[from.NodeLabel] = true
	}
	return read
}

// of returns the labels that are read. A label that names its node is left out: no new node has the value of another.
func (k keys) of(labels map[string]string) map[string]string {
	some := map[string]string{}
	for key, value := range labels {
		if (k[key] || strings.HasPrefix(key, rayPrefix)) && !landing.NamesNode(key) {
			some[key] = value
		}
	}
	return some
}

// add adds a place unless an equal one is in the list: a pool may have thousands of equal nodes.
func (l *placeList) add(p place) {
	same := func(other place) bool {
		return other.declared == p.declared && other.open == p.open && sameText(other.gpus.Product, p.gpus.Product) &&
			maps.Equal(other.labels, p.labels)
	}
	if p.open || !slices.ContainsFunc(l.all, same) {
		l.all = append(l.all, p)
	}
}

func sameText(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func nameOf(node *landing.Node) string {
	if node.Declared {
		return "pool " + node.Name
	}
	return "node " + node.Name
}

func templateOf(rooms []landing.Room, pool string) *landing.NodeTemplate {
	at := slices.IndexFunc(rooms, func(r landing.Room) bool { return r.Pool == pool })
	if at < 0 {
		return nil
	}
	return rooms[at].Template
}

// read fills in the GPUs that the template and the pod's own selector prove.
func (p place) read(reader sharing.Reader, pod *landing.PodShape) place {
	labels := maps.Clone(p.labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, r := range p.requirements {
		if r.Operator == "In" && len(r.Values) == 1 {
			labels[r.Key] = r.Values[0]
		}
	}
	maps.Copy(labels, pod.Selector)
	p.gpus = reader.Read(sharing.NodeObject{Labels: labels})
	return p
}

// values returns the possible values of a node's label there; the empty text stands for a node without it. It reports
// false if there may be others.
func (p *place) values(pod *landing.PodShape, key string) (values []string, all bool) {
	if value, selected := pod.Selector[key]; selected {
		return []string{value}, true
	}
	if landing.NamesNode(key) {
		return nil, false
	}
	if value, set := p.labels[key]; set {
		return []string{value}, true
	}
	if !p.open {
		return []string{""}, true
	}
	for _, r := range p.requirements {
		if r.Key == key && r.Operator == "In" {
			return admitted(pod, key, r.Values), true
		}
	}
	return required(pod, key)
}

// required returns the values of a label that the pod's required affinity allows, if every alternative lists some.
func required(pod *landing.PodShape, key string) (values []string, all bool) {
	for _, term := range pod.Affinity {
		at := slices.IndexFunc(
			term.Labels,
			func(r landing.Requirement) bool { return r.Key == key && r.Operator == "In" },
		)
		if at < 0 {
			return nil, false
		}
		values = append(values, term.Labels[at].Values...)
	}
	return values, len(values) > 0
}

// admitted leaves out the values that the pod's affinity rules out.
func admitted(pod *landing.PodShape, key string, values []string) []string {
	allowed, limited := required(pod, key)
	if !limited {
		return values
	}
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !slices.Contains(allowed, v) })
}

// label returns what new pods announce under a Ray label that has the value of a node's label. It reports false if no
// place has the node's label.
func (l *placeList) label(ray, node string) (Announced, bool) {
	a := Announced{Name: ray}
	lacking, open := "", ""
	for i := range l.all {
		p := &l.all[i]
		values, all := p.values(l.pod, node)
		for _, value := range values {
			if value == "" {
				lacking = p.name
				continue
			}
			a.Values = append(a.Values, value)
		}
		if !all {
			open = p.name
		}
	}
	slices.Sort(a.Values)
	a.Values = slices.Compact(a.Values)
	switch {
	case open != "":
		a.Values = nil
		a.Why = fmt.Sprintf("label %s of %s is unknown", node, open)
	case len(a.Values) == 0:
		return a, false
	case lacking != "":
		a.Why = fmt.Sprintf("its pods also fit on nodes without label %s, such as %s", node, lacking)
	case len(a.Values) > 1:
		a.Present = true
		a.Why = fmt.Sprintf("its pods fit on nodes with %s=%s", node, strings.Join(a.Values, " and "))
	default:
		a.Present, a.Certain = true, true
	}
	return a, true
}

// rayPrefix begins the labels that Ray reserves for itself. On a Kubernetes node, such a label can only be meant for
// the Ray node.
const rayPrefix = "ray.io/"

// sameNames lists the labels of nodes that may have been meant for Ray nodes: those that begin as Ray's own, and all
// that the shape or template of a pool declares.
func (l *placeList) sameNames() []string {
	keys := map[string]bool{}
	for i := range l.all {
		for key := range l.all[i].labels {
			if strings.HasPrefix(key, rayPrefix) || l.all[i].declared {
				keys[key] = true
			}
		}
	}
	for _, row := range ownLabels {
		delete(keys, row.label)
	}
	for _, key := range setByRay {
		delete(keys, key)
	}
	for _, row := range l.mapped {
		delete(keys, row.Node)
	}
	return slices.Sorted(maps.Keys(keys))
}

// setByRay are labels that Ray sets from other sources than a node's label of the same name.
var setByRay = []string{acceleratorLabel, "ray.io/node-id", "ray.io/node-group", TPUSliceName, TPUWorkerID, tpuTopology,
	TPUPodType}

// sameName returns what a label of nodes means for the Ray label of the same name. Only one of Ray's own names is taken
// for certain.
func (l *placeList) sameName(key string) (Announced, bool) {
	a, ok := l.label(key, key)
	ours := strings.HasPrefix(key, rayPrefix)
	a.Present = a.Present && ours
	if a.Certain = a.Certain && ours; !a.Certain && a.Why == "" {
		a.Why = fmt.Sprintf("its nodes have the label, but nothing shows that Ray takes it over; "+
			"if it does, set --topology-label %s=%s", key, key)
	}
	return a, ok && (a.Certain || len(a.Values) > 0)
}
