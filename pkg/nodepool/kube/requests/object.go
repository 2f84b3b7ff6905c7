package requests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kube-openapi/pkg/validation/strfmt"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// specForm is the spec of a ResourceRequest in JSON. Amounts in its bundles are exact.
type specForm struct {
	v1alpha1.ResourceRequestSpec
	Bundles []raydemand.Request `json:"bundles"` // replaces the embedded field
}

// readForm is specForm without a type for renewTime: the API server accepts times that MicroTime does not.
type readForm struct {
	specForm
	RenewTime json.RawMessage `json:"renewTime"` // replaces the embedded field
}

// requestObject is a request that is being decoded.
type requestObject struct{ *nodepool.OwnedRequest }

// rayClusterKind is the kind of a request's owner.
const rayClusterKind = "RayCluster"

// kept returns a text that the API server does not bound, or nothing if it is longer than any real one.
func kept(text string) string {
	if len(text) > 128 {
		return ""
	}
	return text
}

// Decode reads one object. It reports faults in Unreadable, so that a bad object does not affect others. An object
// stored before its kind had today's limits may exceed them; like an unreadable one, it does not count, and its bundles
// are not kept.
func Decode(object *unstructured.Unstructured) *nodepool.OwnedRequest {
	r := requestObject{&nodepool.OwnedRequest{
		UID: string(object.GetUID()), ResourceVersion: object.GetResourceVersion(), Generation: object.GetGeneration(),
		Deleting: object.GetDeletionTimestamp() != nil,
	}}
	r.ID, r.Since = object.GetName(), object.GetCreationTimestamp().UTC()
	r.Cluster.Namespace, r.RenewedAt = object.GetNamespace(), r.Since
	for _, owner := range object.GetOwnerReferences() {
		if owner.Kind == rayClusterKind {
			r.ClusterUID = kept(string(owner.UID))
		}
	}
	// Owner, RayCluster and lease are known even if the rest cannot be read, so that the owner can replace the request.
	r.readWho(object)
	if status, err := readPart[v1alpha1.ResourceRequestStatus](object, "status"); err == nil {
		r.Status = statusOf(&status)
	}
	r.Requests, r.Unreadable = r.readBundles(object)
	return r.OwnedRequest
}

// readBundles returns the bundles, or why they cannot be read.
func (r requestObject) readBundles(object *unstructured.Unstructured) (bundles []raydemand.Request, wrong string) {
	spec, err := readPart[readForm](object, "spec")
	if err != nil {
		return nil, unreadable(err)
	}
	r.Priority, r.AllOrNothing = spec.Priority, spec.AllOrNothing
	for i, request := range spec.Bundles {
		request.Count = max(request.Count, 1)
		request = request.Sliced()
		if err := decode.CheckRequest(request); err != nil {
			return nil, fmt.Sprintf("spec.bundles[%d]: %v", i, err)
		}
		bundles = append(bundles, request)
	}
	return bundles, ""
}

// unreadable says what of a spec cannot be read. What passed the validation of the CRD can be read, so this is about
// objects that are older than it, and manifests.
func unreadable(err error) string {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return "spec: " + decode.Short(err.Error())
	}
	at := "spec"
	if name := wrong.Field[strings.LastIndex(wrong.Field, ".")+1:]; name != "" { // without the embedded types before it
		at += "." + name
	}
	return fmt.Sprintf("%s is of type %s: want %s", at, wrong.Value, fieldpath.WantType(wrong.Type))
}

// decodeExactly decodes a value exactly, without floats.
func decodeExactly(value, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// readWho reads single fields independently.
func (r requestObject) readWho(object *unstructured.Unstructured) {
	r.Cluster.Name, _, _ = unstructured.NestedString(object.Object, "spec", "rayCluster")
	r.Owner, _, _ = unstructured.NestedString(object.Object, "spec", "owner")
	hold, _, _ := unstructured.NestedBool(object.Object, "spec", "holdUntilDeleted")
	if lease, _, err := unstructured.NestedInt64(object.Object, "spec", "leaseSeconds"); err == nil && !hold {
		r.LeaseSeconds = int32(min(max(lease, 0), math.MaxInt32))
	}
	if r.LeaseSeconds == 0 {
		return
	}
	r.RenewedAt = leaseGiven(object, r.Since)
	text, _, _ := unstructured.NestedString(object.Object, "spec", "renewTime")
	if at, err := strfmt.ParseDateTime(text); err == nil && text != "" { // as the API server reads a date-time
		r.RenewTime = time.Time(at).UTC()
		r.RenewedAt = latest(r.RenewTime, r.Since) // nobody renews a request that does not exist yet
	}
}

// leaseGiven returns when leaseSeconds was last written, according to managedFields, or else when the object was
// created. A request without a lease may have got one later.
func leaseGiven(object *unstructured.Unstructured, made time.Time) time.Time {
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Subresource == "" && entry.FieldsV1 != nil &&
			bytes.Contains(entry.FieldsV1.Raw, []byte(`"f:leaseSeconds"`)) {
			made = latest(made, entry.Time.UTC())
		}
	}
	return made
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// readPart decodes the spec or the status of an object exactly, without floats.
func readPart[T any](object *unstructured.Unstructured, name string) (part T, err error) {
	err = decodeExactly(object.Object[name], &part)
	return part, err
}

func statusOf(form *v1alpha1.ResourceRequestStatus) nodepool.OwnedStatus {
	s := nodepool.OwnedStatus{
		ObservedRequest:    form.ObservedRequest,
		ObservedGeneration: form.ObservedGeneration,
		State:              raydemand.RequestState(form.State),
		Pods:               form.Pods,
		Since:              timeOf(form.Since),
	}
	if form.Reason != nil {
		s.Code, s.Message = form.Reason.Code, form.Reason.Message
	}
	for _, g := range form.Groups {
		s.Groups = append(s.Groups, nodepool.OwnedGroup{Name: g.Name, Pods: g.Pods})
	}
	for _, condition := range form.Conditions {
		switch at := timeOf(&condition.LastTransitionTime); condition.Type {
		case v1alpha1.ConditionSatisfied:
			s.SatisfiedSince = at
		case v1alpha1.ConditionExpired:
			s.ExpiredSince = at
		}
	}
	return s
}

// timeOf returns zero for a time that cannot be written again: anyone who may write the status may write the last hour
// of the year 9999 in their time zone.
func timeOf(at *metav1.Time) time.Time {
	if at == nil || at.UTC().Year() > 9999 || at.UTC().Year() < 1 {
		return time.Time{}
	}
	return at.UTC()
}

// statusPatch returns a merge patch of the whole status; it removes absent fields. The uid guards against another
// object of the same name.
func statusPatch(uid string, s *nodepool.OwnedStatus) ([]byte, error) {
	form := map[string]any{
		"observedGeneration": s.ObservedGeneration, "observedRequest": s.ObservedRequest, "state": string(s.State),
		"since": timeForm(s.Since), "groups": nil, "pods": nil,
		"reason": v1alpha1.Reason{Code: s.Code, Message: s.Message}, "conditions": conditionsOf(s),
	}
	if len(s.Groups) > 0 {
		groups := make([]v1alpha1.GroupPods, len(s.Groups))
		for i, g := range s.Groups {
			groups[i] = v1alpha1.GroupPods{Name: g.Name, Pods: g.Pods}
		}
		form["groups"] = groups
	}
	if len(s.Pods) > 0 {
		form["pods"] = s.Pods
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": form})
}

func conditionsOf(s *nodepool.OwnedStatus) []metav1.Condition {
	condition := func(kind string, holds bool, since time.Time) metav1.Condition {
		status := metav1.ConditionFalse
		if holds {
			status = metav1.ConditionTrue
		}
		return metav1.Condition{Type: kind, Status: status, Reason: string(s.State), Message: s.Message,
			LastTransitionTime: metav1.NewTime(since), ObservedGeneration: s.ObservedGeneration}
	}
	return []metav1.Condition{
		condition(v1alpha1.ConditionSatisfied, s.State == raydemand.RequestSatisfied, s.SatisfiedSince),
		condition(v1alpha1.ConditionExpired, s.State == raydemand.RequestExpired, s.ExpiredSince),
	}
}

// timeForm is a time as the API server stores it; nil removes one.
func timeForm(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return metav1.NewTime(at)
}

// Encode returns a new object for a request.
func Encode(r *nodepool.OwnedRequest) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(v1alpha1.GroupVersion.String())
	object.SetKind(v1alpha1.Kind)
	object.SetNamespace(r.Cluster.Namespace)
	object.SetName(r.ID)
	return object, encodeSpec(object, r)
}

// encodeSpec replaces the spec of an object.
func encodeSpec(object *unstructured.Unstructured, r *nodepool.OwnedRequest) error {
	var form specForm
	form.RayCluster, form.Owner, form.Priority = r.Cluster.Name, r.Owner, r.Priority
	form.AllOrNothing, form.HoldUntilDeleted, form.Bundles = r.AllOrNothing, r.LeaseSeconds <= 0, r.Requests
	if r.LeaseSeconds > 0 {
		renewed := metav1.NewMicroTime(r.RenewedAt)
		form.LeaseSeconds, form.RenewTime = &r.LeaseSeconds, &renewed
	}
	var spec map[string]any
	if err := decodeExactly(form, &spec); err != nil {
		return err
	}
	object.Object["spec"] = spec
	return nil
}

// own makes a RayCluster the owner of an object, so that both are deleted together.
func own(object *unstructured.Unstructured, cluster nodepool.ClusterReference) {
	object.SetOwnerReferences(append(object.GetOwnerReferences(), metav1.OwnerReference{
		APIVersion: rayv1.SchemeGroupVersion.String(), Kind: rayClusterKind, Name: cluster.Name,
		UID: types.UID(cluster.UID),
	}))
}

// requestKey is the namespace and name of a ResourceRequest.
type requestKey struct{ namespace, name string }
