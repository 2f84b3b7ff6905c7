package attached

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
		known.Templates[name] = ""
		template, err := groupTemplate(rayCluster, name, group.Pod.Neighbors.Labels)
		if err == nil && template != nil {
			known.Templates[name], _ = identity(template)
		}
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

// ours reports whether Heliostat made an object for a RayCluster.
func ours(object *unstructured.Unstructured, rayClusterUID string) bool {
	if object.GetLabels()[madeLabel] != madeBy || object.GetAnnotations()[groupAnnotation] == "" {
		return false
	}
	for _, reference := range object.GetOwnerReferences() {
		if reference.Kind == "RayCluster" && string(reference.UID) == rayClusterUID {
			return true
		}
	}
	return false
}

// readBuffer reads a buffer with the RayCluster that owns it; false for one that is not Heliostat's.
func readBuffer(object *unstructured.Unstructured) (buffer Object[nodepool.Buffer], ok bool) {
	var fields struct {
		Spec struct {
			Replicas int64 `json:"replicas"`
		} `json:"spec"`
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	for _, reference := range object.GetOwnerReferences() {
		if reference.Kind != "RayCluster" || !ours(object, string(reference.UID)) {
			continue
		}
		// A status that cannot be read says nothing; the rest was written by this package.
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &fields)
		b := nodepool.Buffer{
			Name: object.GetName(), UID: string(object.GetUID()), Group: object.GetAnnotations()[groupAnnotation],
			Pods: fields.Spec.Replicas, Template: object.GetAnnotations()[templateAnnotation],
			Deleting: object.GetDeletionTimestamp() != nil,
		}
		if err == nil {
			judgeBuffer(&b, fields.Status.Conditions)
		}
		cluster := nodepool.ClusterKey{Namespace: object.GetNamespace(), Name: reference.Name}
		return Object[nodepool.Buffer]{Cluster: cluster, UID: string(reference.UID), Value: b}, true
	}
	return buffer, false
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

// identity identifies the content of a PodTemplate. Keys of objects are sorted in its JSON.
func identity(template map[string]any) (string, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("a pod template: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// groupTemplate returns the template of a group's pods, as far as it says which node they need; nil if there is no such
// group. labels are those of its pods. Commands, environments and mounts are left out: they may contain what not
// everybody may read who may read PodTemplates, and a change of them needs no other node. So are scheduling gates,
// behind which a pod has no node at all, and the name of a node.
func groupTemplate(
	rayCluster *unstructured.Unstructured, group string, labels map[string]string,
) (map[string]any, error) {
	template, err := wholeTemplate(rayCluster, group, labels)
	if err != nil || template["spec"] == nil {
		return nil, err
	}
	var from corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &from); err != nil {
		return nil, fmt.Errorf("the template of worker group %s: %w", group, err)
	}
	pod := &from.Spec
	kept := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: from.Labels, Annotations: from.Annotations},
		Spec: corev1.PodSpec{
			Containers: containersOf(pod.Containers), InitContainers: containersOf(pod.InitContainers),
			Affinity: pod.Affinity, EnableServiceLinks: pod.EnableServiceLinks, HostNetwork: pod.HostNetwork,
			NodeSelector: pod.NodeSelector, OS: pod.OS, Overhead: pod.Overhead, PreemptionPolicy: pod.PreemptionPolicy,
			PriorityClassName: pod.PriorityClassName, ResourceClaims: pod.ResourceClaims, Resources: pod.Resources,
			RuntimeClassName: pod.RuntimeClassName, SchedulerName: pod.SchedulerName, Tolerations: pod.Tolerations,
			TopologySpreadConstraints: pod.TopologySpreadConstraints,
		},
	}
	for _, volume := range pod.Volumes {
		bound := corev1.VolumeSource{CSI: volume.CSI, Ephemeral: volume.Ephemeral,
			PersistentVolumeClaim: volume.PersistentVolumeClaim}
		if bound != (corev1.VolumeSource{}) { // it binds a pod to a zone or a driver
			kept.Spec.Volumes = append(kept.Spec.Volumes, corev1.Volume{Name: volume.Name, VolumeSource: bound})
		}
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(kept)
}

// containersOf keeps the resources, and the ports that a node has only once.
func containersOf(from []corev1.Container) (kept []corev1.Container) {
	for _, c := range from {
		ports := slices.DeleteFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.HostPort == 0 })
		kept = append(kept, corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources,
			RestartPolicy: c.RestartPolicy, Ports: ports})
	}
	return kept
}

// errForeign: somebody else made the object that has the name of one of Heliostat's.
var errForeign = errors.New("Heliostat did not make it for this RayCluster, so it is not changed")

// Keep creates the buffer with its PodTemplate, or changes both to be as they should be. labels are those of the
// group's pods. The PodTemplate comes first, because the node autoscaler refuses a buffer without one.
func (w *Buffers) Keep(
	ctx context.Context, rayCluster *unstructured.Unstructured, labels map[string]string, b nodepool.Buffer,
) error {
	namespace := rayCluster.GetNamespace()
	template, err := groupTemplate(rayCluster, b.Group, labels)
	switch {
	case err != nil:
		return err
	case template == nil:
		return fmt.Errorf("RayCluster %s/%s has no worker group %s with a template, so its pods cannot be described",
			namespace, rayCluster.GetName(), b.Group)
	}
	if b.Template, err = identity(template); err != nil {
		return fmt.Errorf("worker group %s: %w", b.Group, err)
	}
	pods := podTemplate(rayCluster, b.Name, b.Group, template)
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

// apply writes an object by server-side apply, so that what others write to it stays. It takes over no object of
// somebody else: it reads first. One that appears in between has no fields of this manager, so it is a conflict.
func apply(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	options := metav1.ApplyOptions{FieldManager: nodepool.FieldManager}
	switch found, err := client.Get(ctx, object.GetName(), metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case !ours(found, string(object.GetOwnerReferences()[0].UID)):
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
	case !ours(found, string(rayCluster.GetUID())):
		return nil
	default:
		return remove(ctx, templates, "PodTemplate", namespace, b.Name, found.GetUID())
	}
}
