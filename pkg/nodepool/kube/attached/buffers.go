package attached

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// Buffers knows the CapacityBuffers of RayClusters, and writes them.
type Buffers struct {
	*untyped[nodepool.Buffer]
}

// NewBuffers prepares the reads; Start begins them.
func NewBuffers(c Config) *Buffers {
	served := c.Served(autoscalingGroup, bufferVersions...)
	served.Resource = bufferResource
	return &Buffers{New(c, Kind[*unstructured.Unstructured, nodepool.Buffer]{
		Served: served, Resource: bufferResource, Selector: Made, Read: readBuffer,
	})}
}

// AddTo adds to a RayCluster what is known of its buffers, and what those that its policy wants are made of.
func (w *Buffers) AddTo(cluster *nodepool.Cluster, rayCluster *unstructured.Unstructured) {
	if w == nil {
		return
	}
	list, state := w.Of(cluster.Key, cluster.UID)
	slices.SortFunc(list, func(a, b nodepool.Buffer) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
	known := &nodepool.Buffers{List: list}
	if known.Missing = state.Unknown; !state.Tried {
		known.Missing, known.Unread = "", "CapacityBuffers have not been read yet"
	}
	cluster.Buffers = known
	if cluster.Policy == nil || len(cluster.Policy.KeepWarmNodes) == 0 {
		return
	}
	known.Templates, rayCluster = map[string]string{}, decode.Whole(rayCluster)
	for i := range cluster.Policy.KeepWarmNodes {
		name := cluster.Policy.KeepWarmNodes[i].Group
		group, exists := cluster.Group(name)
		if _, done := known.Templates[name]; done || !exists {
			continue
		}
		// One that cannot be read has no identity, and the write of its buffer says why.
		_, known.Templates[name], _ = podTemplate(rayCluster, name, group.Pod.Neighbors.Labels)
	}
}

const (
	bufferResource = "capacitybuffers"
	// templateAnnotation is what the PodTemplate of a buffer says.
	templateAnnotation = "heliostat.dev/pod-template"
	// provisioned are the conditions of a buffer's status: its PodTemplate is found, and its nodes are launched.
	resolved, provisioned = "ReadyForProvisioning", "Provisioning"
)

// bufferVersions are those that can be written, the best first: Karpenter and newer releases of GKE serve v1beta1.
var bufferVersions = []string{"v1beta1", "v1alpha1"}

// buffer returns the CapacityBuffer for pods of a group of the RayCluster.
func buffer(rayCluster *unstructured.Unstructured, version string, b nodepool.Buffer) *unstructured.Unstructured {
	annotations := map[string]string{groupAnnotation: b.Group, templateAnnotation: b.Template}
	return madeFor(rayCluster, b.Name, annotations, map[string]any{
		"apiVersion": autoscalingGroup + "/" + version, "kind": "CapacityBuffer",
		"spec": map[string]any{
			"podTemplateRef": map[string]any{"name": b.Name},
			"replicas":       b.Pods,
		},
	})
}

// readBuffer reads a buffer with the RayCluster that owns it; false for one that is not Heliostat's.
func readBuffer(object *unstructured.Unstructured) (of Object[nodepool.Buffer], ours bool) {
	var fields struct {
		Spec struct {
			Replicas int64 `json:"replicas"`
		} `json:"spec"`
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if of.Cluster, of.UID, ours = owner(object); !ours {
		return of, false
	}
	// A status that cannot be read says nothing; the rest was written by this package.
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &fields)
	of.Value = nodepool.Buffer{
		Name: object.GetName(), UID: string(object.GetUID()), Group: object.GetAnnotations()[groupAnnotation],
		Pods: fields.Spec.Replicas, Template: object.GetAnnotations()[templateAnnotation],
		Deleting: object.GetDeletionTimestamp() != nil,
	}
	if err == nil {
		judgeBuffer(&of.Value, fields.Status.Conditions)
	}
	return of, true
}

// judgeBuffer sets what the node autoscaler says. A buffer is provided if its condition Provisioning is true, or, where
// there is no such condition, if the buffer is resolved.
func judgeBuffer(b *nodepool.Buffer, conditions []metav1.Condition) {
	for _, c := range conditions {
		said := c.Reason
		if c.Message != "" && c.Message != c.Reason {
			said += ": " + c.Message
		}
		switch c.Type {
		case resolved:
			b.Broken = c.Status == metav1.ConditionFalse
			if b.Answer == "" {
				b.Answer, b.Provided = said, c.Status == metav1.ConditionTrue
			}
		case provisioned:
			b.Answer, b.Provided = said, c.Status == metav1.ConditionTrue
		}
	}
	b.Provided = b.Provided && !b.Broken
}

// errForeign: somebody else made the object that has the name of one of Heliostat's.
var errForeign = errors.New("Heliostat did not make it for this RayCluster, so it is not changed")

// Keep creates the buffer with its PodTemplate, or changes both to be as they should be. labels are those of the
// group's pods. The PodTemplate comes first, because the node autoscaler refuses a buffer without one.
func (w *Buffers) Keep(
	ctx context.Context, rayCluster *unstructured.Unstructured, labels map[string]string, b nodepool.Buffer,
) error {
	namespace := rayCluster.GetNamespace()
	pods, content, err := podTemplate(rayCluster, b.Group, labels)
	if err != nil {
		return err
	}
	b.Template = content
	pods.SetName(b.Name)
	pods.SetAnnotations(map[string]string{groupAnnotation: b.Group, templateAnnotation: b.Template})
	if err := apply(ctx, w.podTemplates(namespace), pods); err != nil {
		return fmt.Errorf("writing PodTemplate %s/%s: %w", namespace, b.Name, err)
	}
	buffers, version, err := w.client("CapacityBuffers", namespace)
	if err != nil {
		return err
	}
	if err := apply(ctx, buffers, buffer(rayCluster, version, b)); err != nil {
		return fmt.Errorf("writing CapacityBuffer %s/%s: %w", namespace, b.Name, err)
	}
	return nil
}

// ownerUID is the UID of the RayCluster that Heliostat made an object for; empty for an object of somebody else.
func ownerUID(object *unstructured.Unstructured) string {
	_, uid, _ := owner(object)
	return uid
}

// apply writes an object by server-side apply, so that what others write to it stays. It takes over no object of
// somebody else: it reads first. One that appears in between has no fields of this manager, so it is a conflict.
func apply(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	options := metav1.ApplyOptions{FieldManager: nodepool.FieldManager}
	switch found, err := client.Get(ctx, object.GetName(), metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case ownerUID(found) != ownerUID(object):
		return errForeign
	default:
		object.SetUID(found.GetUID()) // not of one that was made again since
		options.Force = true
	}
	_, err := client.Apply(ctx, object.GetName(), object, options)
	return err
}

// Remove deletes a buffer of the RayCluster, and then its PodTemplate. Objects that others made again under the same
// name stay.
func (w *Buffers) Remove(ctx context.Context, rayCluster *unstructured.Unstructured, b nodepool.Buffer) error {
	namespace := rayCluster.GetNamespace()
	buffers, _, err := w.client("CapacityBuffers", namespace)
	if err == nil {
		err = remove(ctx, buffers, "CapacityBuffer", namespace, b.Name, types.UID(b.UID))
	}
	if err != nil {
		return err
	}
	templates := w.podTemplates(namespace)
	switch found, err := templates.Get(ctx, b.Name, metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading PodTemplate %s/%s: %w", namespace, b.Name, err)
	case ownerUID(found) != string(rayCluster.GetUID()):
		return nil
	default:
		return remove(ctx, templates, "PodTemplate", namespace, b.Name, found.GetUID())
	}
}
