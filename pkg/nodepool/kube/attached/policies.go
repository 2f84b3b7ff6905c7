package attached

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/capacity/policytext"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Policies knows the CapacityPolicies of RayClusters.
type Policies struct {
	*untyped[*policy]
}

// policy is one object and the status that it has.
type policy struct {
	capacity.Object
	fault  *fieldpath.Fault
	status capacity.Status
}

// NewPolicies prepares the reads; Start begins them.
func NewPolicies(c Config) *Policies {
	return &Policies{New(c, Kind[*unstructured.Unstructured, *policy]{
		Served:   c.Served(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version),
		Resource: v1alpha1.CapacityPolicyResource.Resource,
		Read: func(object *unstructured.Unstructured) (Object[*policy], bool) {
			key, found := policyOf(object)
			return Object[*policy]{Cluster: key, Value: found}, true
		},
		// A status that this process has written starts no cycle.
		Same: func(before, now *policy) bool {
			return before.Generation == now.Generation && before.UID == now.UID && before.Deleting == now.Deleting
		},
		Unread: func(namespace, why string) {
			c.Logger.Info("CapacityPolicies do not count; the annotation "+capacity.Annotation+" does",
				"namespace", namespace, "reason", why)
		},
	})}
}

// policyOf reads one object, and returns the RayCluster that it is for. It never fails: what cannot be read is a fault
// of the object.
func policyOf(object *unstructured.Unstructured) (nodepool.ClusterKey, *policy) {
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
	found.Policy, found.fault = policytext.ReadStored(spec, "rayCluster")
	if found.fault != nil {
		found.Fault = found.fault.Error()
	}
	return key, found
}

// AddTo adds to a RayCluster the policy that counts, and the statuses that are to be written.
func (w *Policies) AddTo(cluster *nodepool.Cluster) {
	if w == nil {
		return
	}
	known, state := w.of(cluster.Key)
	// Until they are known, idle workers that a policy wants must not go. What this process cannot read does not count.
	if cluster.Policy == nil && !state.Tried {
		cluster.PolicyUnknown = state.Unknown
	}
	if len(known) == 0 {
		return
	}
	objects := make([]*capacity.Object, 0, len(known))
	for _, one := range known {
		objects = append(objects, &one.Object)
	}
	annotated := cluster.Policy
	cluster.Policy = capacity.Choose(annotated, objects)
	for _, one := range known {
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
func (w *Policies) Clusters() []nodepool.ClusterKey {
	if w == nil {
		return nil
	}
	return w.untyped.Clusters()
}

// of returns the policies for a RayCluster by name, and what is known of those of its namespace.
func (w *Policies) of(key nodepool.ClusterKey) ([]*policy, State) {
	known, state := w.Of(key, "")
	slices.SortFunc(known, func(a, b *policy) int { return strings.Compare(a.Name, b.Name) })
	return known, state
}

// WithoutCluster returns the statuses that are to be written to the policies of a RayCluster that does not exist.
func (w *Policies) WithoutCluster(key nodepool.ClusterKey) (statuses []capacity.Status) {
	if w == nil {
		return nil
	}
	known, _ := w.of(key)
	for _, one := range known {
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

// ReadPolicy reads one object. It returns the RayCluster that it is for, and what is wrong with it; nil if nothing is.
func ReadPolicy(object *unstructured.Unstructured) (nodepool.ClusterKey, *capacity.Object, *raydemand.Finding) {
	key, found := policyOf(object)
	if found.fault == nil {
		return key, &found.Object, nil
	}
	return key, &found.Object, &found.findings(key.Namespace, nil)[0]
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
