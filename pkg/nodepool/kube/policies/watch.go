// Package policies reads CapacityPolicies: optional objects, of which one may count for each RayCluster. It says which
// status each of them should have, and does not write or decide. Without the kind, or without the right to read it,
// there are no CapacityPolicies, and one line of the log says so; the annotation of a RayCluster works without both.
package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/capacity/policytext"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Config says what is read and how.
type Config struct {
	Client    dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	// Namespaces are those whose RayClusters are served; empty means all.
	Namespaces []string
	// Changed is called after something changed for a RayCluster.
	Changed func(nodepool.ClusterKey)
	Logger  *slog.Logger
}

// Watch knows the CapacityPolicies of RayClusters.
type Watch struct {
	config Config

	mu sync.Mutex
	// Guarded by mu. all are the policies by RayCluster and name.
	all map[nodepool.ClusterKey]map[string]*policy
	// unread says by namespace why its policies are not known yet; empty if they are known, or if this process never
	// will know them. Until then, idle workers that a policy wants must not go.
	unread map[string]string
	// said is the last line about reads that are not possible, by namespace.
	said map[string]string
}

// policy is one object and the status that it has.
type policy struct {
	capacity.Object
	fault  *fieldpath.Fault
	status capacity.Status
}

// NewWatch prepares the reads; Start begins them.
func NewWatch(c Config) *Watch {
	if len(c.Namespaces) == 0 {
		c.Namespaces = []string{metav1.NamespaceAll}
	}
	w := &Watch{config: c, unread: map[string]string{}, said: map[string]string{},
		all: map[nodepool.ClusterKey]map[string]*policy{}}
	for _, namespace := range c.Namespaces {
		w.unread[namespace] = "they have not been read yet"
	}
	return w
}

// Start reads until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	served := reflector.Served{Client: w.config.Client, Discovery: w.config.Discovery,
		Group: v1alpha1.GroupVersion.Group, Versions: []string{v1alpha1.GroupVersion.Version}, Logger: w.config.Logger}
	var reads sync.WaitGroup
	for _, namespace := range w.config.Namespaces {
		without := func(why string) { w.without(namespace, why) }
		reads.Go(func() {
			served.Source(v1alpha1.CapacityPolicyResource.Resource, namespace, "", without).
				Into(ctx, &reflector.Store[*unstructured.Unstructured]{
					Put: w.put, Remove: w.remove,
					ReplaceAll: func(list []*unstructured.Unstructured, _ string) { w.replace(namespace, list) },
				})
		})
	}
	reads.Wait()
	return nil
}

// NeedLeaderElection reports false: a candidate for leadership reads as well.
func (w *Watch) NeedLeaderElection() bool { return false }

// without notes that the policies of a namespace cannot be read, and says so once.
func (w *Watch) without(namespace, why string) {
	w.mu.Lock()
	news := w.said[namespace] != why
	w.said[namespace], w.unread[namespace] = why, ""
	changed := w.forget(namespace)
	w.mu.Unlock()
	if news {
		w.config.Logger.Info("CapacityPolicies do not count; the annotation "+capacity.Annotation+" does",
			"namespace", namespace, "reason", why)
	}
	w.tell(changed)
}

// forget drops the policies of a namespace, or of all, and returns the RayClusters that had some. The caller holds mu.
func (w *Watch) forget(namespace string) map[nodepool.ClusterKey]bool {
	changed := map[nodepool.ClusterKey]bool{}
	maps.DeleteFunc(w.all, func(key nodepool.ClusterKey, _ map[string]*policy) bool {
		gone := namespace == metav1.NamespaceAll || key.Namespace == namespace
		changed[key] = gone
		return gone
	})
	maps.DeleteFunc(changed, func(_ nodepool.ClusterKey, gone bool) bool { return !gone })
	return changed
}

func (w *Watch) tell(changed map[nodepool.ClusterKey]bool) {
	for key := range changed {
		w.config.Changed(key)
	}
}

func (w *Watch) put(object *unstructured.Unstructured) {
	key, found := read(object)
	w.mu.Lock()
	before := w.all[key][found.Name]
	w.keep(key, found)
	w.mu.Unlock()
	// A status that this process has written starts no cycle.
	if before == nil || before.Generation != found.Generation || before.UID != found.UID ||
		before.Deleting != found.Deleting {
		w.config.Changed(key)
	}
}

// keep keeps a policy. The caller holds mu.
func (w *Watch) keep(key nodepool.ClusterKey, read *policy) {
	if w.all[key] == nil {
		w.all[key] = map[string]*policy{}
	}
	w.all[key][read.Name] = read
}

func (w *Watch) remove(object *unstructured.Unstructured) {
	key, found := read(object)
	w.mu.Lock()
	delete(w.all[key], found.Name)
	if len(w.all[key]) == 0 {
		delete(w.all, key)
	}
	w.mu.Unlock()
	w.config.Changed(key)
}

// replace takes a whole list: the first one, or the one after a watch broke.
func (w *Watch) replace(namespace string, list []*unstructured.Unstructured) {
	w.mu.Lock()
	changed := w.forget(namespace)
	w.unread[namespace], w.said[namespace] = "", ""
	for _, object := range list {
		key, found := read(object)
		w.keep(key, found)
		changed[key] = true
	}
	w.mu.Unlock()
	w.tell(changed)
}

// read reads one object, and returns the RayCluster that it is for. It never fails: what cannot be read is a fault of
// the object.
func read(object *unstructured.Unstructured) (nodepool.ClusterKey, *policy) {
	key := nodepool.ClusterKey{Namespace: object.GetNamespace()}
	key.Name, _, _ = unstructured.NestedString(object.Object, "spec", "rayCluster")
	found := &policy{Object: capacity.Object{
		Name: object.GetName(), UID: string(object.GetUID()), Generation: object.GetGeneration(),
		CreatedAt: object.GetCreationTimestamp().UTC(), Deleting: object.GetDeletionTimestamp() != nil,
		Written: capacity.Written{Source: "CapacityPolicy " + object.GetName()},
	}}
	found.status = capacity.Status{Name: found.Name, UID: found.UID}
	found.status.Generation, _, _ = unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	state, _, _ := unstructured.NestedString(object.Object, "status", "state")
	found.status.State = capacity.State(state)
	found.status.Message, _, _ = unstructured.NestedString(object.Object, "status", "message")
	lines, _, _ := unstructured.NestedStringSlice(object.Object, "status", "warmNodes")
	found.status.WarmNodes = strings.Join(lines, "\n")
	spec, err := json.Marshal(object.Object["spec"])
	if err != nil {
		spec = []byte("null")
	}
	found.Policy, found.fault = policytext.Read(spec, "rayCluster")
	if found.fault != nil {
		found.Fault = found.fault.Error()
	}
	return key, found
}

// AddTo adds to a RayCluster the policy that counts, and the statuses that are to be written.
func (w *Watch) AddTo(cluster *nodepool.Cluster) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if cluster.Policy == nil {
		cluster.PolicyUnknown = w.unreadIn(cluster.Key.Namespace)
	}
	known := w.all[cluster.Key]
	if len(known) == 0 {
		return
	}
	objects := make([]*capacity.Object, 0, len(known))
	for _, name := range slices.Sorted(maps.Keys(known)) {
		objects = append(objects, &known[name].Object)
	}
	annotated := cluster.Policy
	cluster.Policy = capacity.Choose(annotated, objects)
	for _, object := range objects {
		one := known[object.Name]
		if one.Deleting {
			continue
		}
		wanted := one.wanted(cluster.Policy)
		if wanted != one.status {
			cluster.PolicyStatuses = append(cluster.PolicyStatuses, wanted)
		}
		if wanted.State == capacity.Active {
			cluster.PolicyStatus = &wanted
		}
		cluster.Findings = append(cluster.Findings, one.findings(cluster.Key.Namespace, cluster.Policy)...)
	}
}

// Clusters lists the RayClusters, existing or not, for which there are policies.
func (w *Watch) Clusters() []nodepool.ClusterKey {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.all))
}

// WithoutCluster returns the statuses that are to be written to the policies of a RayCluster that does not exist.
func (w *Watch) WithoutCluster(key nodepool.ClusterKey) (statuses []capacity.Status) {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.all[key])) {
		one := w.all[key][name]
		wanted := one.wanted(nil)
		if wanted.State != capacity.Unreadable {
			wanted.State = capacity.NoRayCluster
			wanted.Message = fmt.Sprintf("Heliostat does not watch a RayCluster %s, or it does not exist", key)
		}
		if wanted != one.status && !one.Deleting {
			statuses = append(statuses, wanted)
		}
	}
	return statuses
}

// wanted returns the status that the object should have; counts is nil if there is no RayCluster.
func (p *policy) wanted(counts *capacity.Written) capacity.Status {
	s := capacity.Status{Name: p.Name, UID: p.UID, Generation: p.Generation, State: capacity.Active,
		Message: "it counts for the RayCluster"}
	switch {
	case p.Fault != "":
		s.State, s.Message = capacity.Unreadable, "spec."+strings.TrimPrefix(p.Fault, "spec.")
	case counts == nil:
	case counts != &p.Written:
		s.State, s.Message = capacity.Superseded, counts.CountsInstead()
	default:
		s.WarmNodes = p.status.WarmNodes
	}
	return s
}

// findings reports an object that does not count or cannot be read.
func (p *policy) findings(namespace string, counts *capacity.Written) []raydemand.Finding {
	object := fmt.Sprintf("CapacityPolicy %s/%s", namespace, p.Name)
	switch {
	case p.fault != nil:
		field := strings.TrimSuffix("spec."+p.fault.Path.String(), ".")
		return []raydemand.Finding{capacity.UnreadableAt(object, field, p.fault.Value, p.fault.Want)}
	case counts != &p.Written:
		return []raydemand.Finding{capacity.SupersededBy(object, counts)}
	}
	return nil
}

// Read reads one object. It returns the RayCluster that it is for, and what is wrong with it; nil if nothing is.
func Read(object *unstructured.Unstructured) (nodepool.ClusterKey, *capacity.Object, *raydemand.Finding) {
	key, found := read(object)
	if found.fault == nil {
		return key, &found.Object, nil
	}
	return key, &found.Object, &found.findings(key.Namespace, nil)[0]
}

// unreadIn says why the policies of a namespace are not known yet. The caller holds mu.
func (w *Watch) unreadIn(namespace string) string {
	if why, one := w.unread[namespace]; one {
		return why
	}
	return w.unread[metav1.NamespaceAll]
}

// StatusPatch returns a merge patch of the whole status. The uid guards against another object of the same name.
func StatusPatch(s capacity.Status) ([]byte, error) {
	status := map[string]any{"observedGeneration": s.Generation, "state": s.State, "message": s.Message,
		"warmNodes": nil} // null removes it
	if s.WarmNodes != "" {
		status["warmNodes"] = strings.Split(s.WarmNodes, "\n")
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": s.UID}, "status": status})
}
