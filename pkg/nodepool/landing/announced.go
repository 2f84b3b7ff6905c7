package landing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Announced is what is known about one label, or about the accelerator type, of the new pods of a worker group.
type Announced struct {
	// Name is the label's key, or raydemand.AcceleratorTypePrefix for the resource accelerator_type:VALUE. The prefix
	// ends with a colon, so no label has this name.
	Name string `json:"name"`
	// Values are the possible values, sorted; empty means any.
	Values []string `json:"values,omitempty"`
	// Present: every new pod has one of Values. Certain: it is the only one.
	Present bool `json:"present,omitempty"`
	Certain bool `json:"certain,omitempty"`
	// PerReplica: the value is the name of the pod's replica, so the hosts of one replica share it, and no other pod
	// has it. Values is empty then.
	PerReplica bool `json:"perReplica,omitempty"`
	// Shown are the values on past workers of the group; the empty text stands for a worker without it.
	Shown []string `json:"shown,omitempty"`
	// Why says where the values come from, or why the value is open.
	Why string `json:"why,omitempty"`
}

// Allows reports whether the value is one of the possible ones.
func (a *Announced) Allows(value string) bool {
	return len(a.Values) == 0 || slices.Contains(a.Values, value)
}

// OverrideLabels is a variable of the container's environment: a JSON object of labels that take precedence over all
// others (docs/reference/facts.md#labels-of-a-new-worker).
const OverrideLabels = "RAY_OVERRIDE_LABELS"

// LabelSource is where Ray takes the value of a label from. At most one of Value, NodeLabel, Replica and Unknown is
// set; the zero value is a template that sets nothing.
type LabelSource struct {
	// Value is the label's value.
	Value string
	// NodeLabel is the label of the Kubernetes node that the pod gets its value from.
	NodeLabel string
	// Replica: the value is the name of the pod's replica.
	Replica bool
	// Unknown says why the value cannot be read.
	Unknown string
	// Overrides: the variable OverrideLabels sets the label.
	Overrides bool
}

// NewWorker is what is known about the new workers of a group without its nodes.
type NewWorker struct {
	// Resources are what `ray start` announces, as far as the template shows it.
	Resources raydemand.Bundle
	// Declared are the labels that the group sets. They take precedence over all others.
	Declared map[string]string
	// Sources are those of Ray's own labels, and of others that the template takes from a field of the pod, by label.
	Sources map[string]LabelSource
	// RayVersion is the version in the RayCluster; empty if it names none.
	RayVersion string
	Pod        *PodShape
}

// Announces returns what is known about the labels and the accelerator type of a group's new workers, sorted by name:
// what the pod's template sets, and the labels and products of the nodes where the pod fits
// (docs/reference/facts.md#labels-of-a-new-worker). What these leave open stays open. A label that no new worker has is
// left out. nodes are existing nodes and declared shapes, rooms all pools, and pods those that accept the group's pods;
// without any, nothing is known about nodes.
func (w NewWorker) Announces(reader sharing.Reader, nodes []Node, rooms []Room, pods []PoolPods) []Announced {
	hosts := w.hosts(reader, nodes, rooms, pods)
	var all []Announced
	add := func(a Announced, ok bool) {
		known := slices.ContainsFunc(all, func(other Announced) bool { return other.Name == a.Name })
		if _, declared := w.Declared[a.Name]; ok && !declared && !known {
			all = append(all, a)
		}
	}
	for _, row := range reader.TopologyLabels {
		a, ok := hosts.label(row.Ray, row.Node)
		a.Why = cmp.Or(a.Why, "by --topology-label")
		add(a, ok)
	}
	for _, row := range rayLabels {
		add(hosts.ownLabel(row, w.Sources[row.label]))
	}
	for _, label := range slices.Sorted(maps.Keys(w.Sources)) {
		add(hosts.ownLabel(rayLabel{label: label, variable: OverrideLabels}, w.Sources[label]))
	}
	if w.Resources["TPU"] > 0 {
		hosts.tpuLabels(add)
	}
	for _, a := range acceleratorType(w, hosts) {
		add(a, true)
	}
	for _, key := range hosts.sameNames() {
		add(hosts.sameName(key))
	}
	slices.SortFunc(all, func(a, b Announced) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// host is a kind of nodes that may hold a new pod.
type host struct {
	// name is for sentences: node a, or pool b.
	name   string
	labels map[string]string
	// requirements are the possible values of other labels, by Karpenter's template.
	requirements []Requirement
	// open: the nodes may have labels that are not listed here. declared: they are the shape or template of a pool.
	open, declared bool
	gpus           sharing.GPUs
}

// hostList is all hosts of a group's new pods.
type hostList struct {
	pod *PodShape
	all []host
	// mapped are the labels of nodes that Ray nodes have under another name.
	mapped []sharing.TopologyLabel
}

// hosts lists the nodes and shapes that could hold a pod, and the pools that may add nodes that nothing describes. New
// nodes of a pool are like those that it has, as the Cluster Autoscaler assumes too.
func (w NewWorker) hosts(reader sharing.Reader, nodes []Node, rooms []Room, pods []PoolPods) hostList {
	list := hostList{pod: w.Pod, mapped: reader.TopologyLabels}
	read := w.labelsRead(reader)
	described := map[string]bool{}
	for _, node := range w.Pod.FittingNodes(nodes) {
		described[node.PoolName()] = true
		found := host{name: "node " + node.Name, labels: node.Labels, declared: node.Declared,
			gpus: ReadNode(reader, node)}
		if node.Declared {
			found.name = "pool " + node.Name
		} else {
			found.labels = labelsOf(node.Labels, read)
		}
		list.add(found)
	}
	templates := map[string]*NodeTemplate{}
	for i := range rooms {
		templates[rooms[i].Pool] = rooms[i].Template
	}
	for i := range pods {
		pool := &pods[i]
		template := templates[pool.Pool]
		if pool.MayAddPods != nil && *pool.MayAddPods == 0 || template == nil && described[pool.Pool] {
			continue
		}
		added := host{name: "new nodes of pool " + pool.Pool, open: true}
		if template != nil {
			added.labels, added.requirements, added.declared = template.Labels, template.Requirements, true
		}
		list.add(added.read(reader, w.Pod))
	}
	if len(list.all) == 0 {
		list.add(host{name: "nodes that are not known yet", open: true}.read(reader, w.Pod))
	}
	return list
}

// labelsRead are the labels of nodes that some Ray label may come from. Of a thousand nodes, few kinds differ in them.
func (w NewWorker) labelsRead(reader sharing.Reader) map[string]bool {
	read := map[string]bool{gkeAccelerator: true, gkeTopology: true}
	for _, key := range productLabels {
		read[key] = true
	}
	for _, row := range reader.TopologyLabels {
		read[row.Node] = true
	}
	for _, row := range rayLabels {
		for _, key := range row.nodeLabels {
			read[key] = true
		}
	}
	for _, from := range w.Sources {
		read[from.NodeLabel] = true
	}
	return read
}

// labelsOf returns the labels that are read. A label that names its node is left out: no new node has the value of
// another.
func labelsOf(labels map[string]string, read map[string]bool) map[string]string {
	some := map[string]string{}
	for key, value := range labels {
		if (read[key] || strings.HasPrefix(key, rayPrefix)) && !namesNode(key) {
			some[key] = value
		}
	}
	return some
}

// add adds a host unless an equal one is in the list: a pool may have thousands of equal nodes.
func (l *hostList) add(h host) {
	same := func(other host) bool {
		return other.declared == h.declared && other.open == h.open && maps.Equal(other.labels, h.labels) &&
			(other.gpus.Product == nil) == (h.gpus.Product == nil) &&
			(h.gpus.Product == nil || *other.gpus.Product == *h.gpus.Product)
	}
	if h.open || !slices.ContainsFunc(l.all, same) {
		l.all = append(l.all, h)
	}
}

// read fills in the GPUs that the template and the pod's own selector prove.
func (h host) read(reader sharing.Reader, pod *PodShape) host {
	labels := map[string]string{}
	maps.Copy(labels, h.labels)
	for _, r := range h.requirements {
		if r.Operator == "In" && len(r.Values) == 1 {
			labels[r.Key] = r.Values[0]
		}
	}
	maps.Copy(labels, pod.Selector)
	h.gpus = reader.Read(sharing.NodeObject{Labels: labels})
	return h
}

// values returns the possible values of a label of the nodes; the empty text stands for a node without it. It reports
// false if there may be others.
func (h *host) values(pod *PodShape, key string) (values []string, all bool) {
	if value, selected := pod.Selector[key]; selected {
		return []string{value}, true
	}
	if namesNode(key) {
		return nil, false
	}
	if value, set := h.labels[key]; set {
		return []string{value}, true
	}
	if !h.open {
		return []string{""}, true
	}
	required, limited := pod.required(func(other string) bool { return other == key })
	for _, r := range h.requirements {
		if r.Key == key && r.Operator == "In" {
			return slices.DeleteFunc(slices.Clone(r.Values), func(value string) bool {
				return limited && !slices.Contains(required, value)
			}), true
		}
	}
	return required, limited
}

// label returns what new pods announce under a Ray label that has the value of a node's label. It reports false if no
// host has the label.
func (l *hostList) label(ray, node string) (Announced, bool) {
	a := Announced{Name: ray}
	lacking, open := "", ""
	for i := range l.all {
		h := &l.all[i]
		values, all := h.values(l.pod, node)
		for _, value := range values {
			if value == "" {
				lacking = h.name
			} else {
				a.Values = append(a.Values, value)
			}
		}
		if !all {
			open = h.name
		}
	}
	a.Values = sorted(a.Values)
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
func (l *hostList) sameNames() []string {
	keys := map[string]bool{}
	for i := range l.all {
		for key := range l.all[i].labels {
			if strings.HasPrefix(key, rayPrefix) || l.all[i].declared {
				keys[key] = true
			}
		}
	}
	for _, row := range rayLabels {
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
func (l *hostList) sameName(key string) (Announced, bool) {
	a, ok := l.label(key, key)
	ours := strings.HasPrefix(key, rayPrefix)
	a.Present = a.Present && ours
	if a.Certain = a.Certain && ours; !a.Certain && a.Why == "" {
		a.Why = fmt.Sprintf("its nodes have the label, but nothing shows that Ray takes it over; "+
			"if it does, set --topology-label %s=%s", key, key)
	}
	return a, ok && (a.Certain || len(a.Values) > 0)
}

// rayLabel is a label that Ray sets from a variable of the container's environment (Ray 2.49 and later,
// ray/_private/resource_and_label_spec.py, _get_default_labels).
type rayLabel struct {
	label, variable string
	// nodeLabels are the labels of Kubernetes nodes that name the same.
	nodeLabels []string
}

// rayLabels are all of them but the group's name, which the operator sets.
var rayLabels = []rayLabel{
	{"ray.io/availability-zone", "RAY_NODE_ZONE",
		[]string{"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"}},
	{"ray.io/availability-region", "RAY_NODE_REGION",
		[]string{"topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"}},
	{"ray.io/market-type", "RAY_NODE_MARKET_TYPE",
		[]string{"karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType",
			"kubernetes.azure.com/scalesetpriority", "cloud.google.com/gke-spot"}},
}

// RayVariables returns the label that Ray sets from each variable.
func RayVariables() map[string]string {
	all := map[string]string{}
	for _, row := range rayLabels {
		all[row.variable] = row.label
	}
	return all
}

// ownLabel returns what new pods announce under a label that Ray sets from a variable. If nothing in the template sets
// the variable, an admission webhook still may: the nodes' labels then show which value is possible, and nothing is
// promised.
func (l *hostList) ownLabel(row rayLabel, from LabelSource) (Announced, bool) {
	if from.Overrides {
		row.variable = OverrideLabels
	}
	switch {
	case from.Replica:
		return Announced{Name: row.label, Present: true, PerReplica: true,
			Why: row.variable + " sets it to the name of the replica"}, true
	case from.Value != "":
		return Announced{Name: row.label, Values: []string{from.Value}, Certain: true, Why: "by " + row.variable}, true
	case from.Unknown != "":
		return Announced{Name: row.label, Why: row.variable + " " + from.Unknown}, true
	case from.NodeLabel != "":
		a, ok := l.label(row.label, from.NodeLabel)
		a.Why = cmp.Or(a.Why, row.variable+" is the node's label "+from.NodeLabel)
		return a, ok
	}
	for _, key := range row.nodeLabels {
		a, ok := l.label(row.label, key)
		if !ok || len(a.Values) == 0 {
			continue
		}
		for i, value := range a.Values {
			a.Values[i] = marketType(key, value)
		}
		a.Present, a.Certain = false, false
		a.Why = fmt.Sprintf("nothing in its template sets %s, but its nodes have %s=%s; set it, or the label %s in "+
			"the group's labels", row.variable, key, strings.Join(a.Values, " and "), row.label)
		return a, true
	}
	return Announced{}, false
}

// marketType converts what clouds write about spot nodes to Ray's spot and on-demand; other labels keep their value.
func marketType(key, value string) string {
	switch key {
	case "karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType":
		return strings.ReplaceAll(strings.ToLower(value), "_", "-")
	case "kubernetes.azure.com/scalesetpriority":
		if value == "regular" {
			return "on-demand"
		}
	case "cloud.google.com/gke-spot":
		if value == "true" {
			return "spot"
		}
		return "on-demand"
	}
	return value
}
