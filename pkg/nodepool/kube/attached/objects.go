// Package attached reads the objects that belong to RayClusters, and keeps them by RayCluster (Objects): pods, and the
// ProvisioningRequests and CapacityBuffers that Heliostat makes and writes. A kind, or the right to read it, may be
// missing; then there are no such objects, and a finding says so. The package writes only to objects that Heliostat
// made for the RayCluster, and must not decide anything.
package attached

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// Config says where objects are read, and what to call after a change.
type Config struct {
	Client    dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	// Namespaces are those whose RayClusters are served; empty means all.
	Namespaces []string
	// Changed is called after something changed for a RayCluster.
	Changed func(nodepool.ClusterKey)
	Logger  *slog.Logger
}

// Served finds a kind of an API group.
func (c Config) Served(group string, versions ...string) reflector.Served {
	return reflector.Served{
		Client: c.Client, Discovery: c.Discovery, Group: group, Versions: versions, Logger: c.Logger,
	}
}

// Named has a name in a namespace.
type Named interface {
	GetNamespace() string
	GetName() string
}

// Kind says which objects are read, and how. E is the form in which they are read, and T what is known of them.
type Kind[E Named, T comparable] struct {
	// Served finds the kind. Selector selects objects by label; empty means all.
	Served   reflector.Served
	Resource string
	Selector string
	// Source reads a kind that each API server has, and Strip turns its objects into an E; nil for all others.
	Source func(namespace string) reflector.Source
	Strip  toolscache.TransformFunc
	// Read reads an object; false for one that is not for a RayCluster.
	Read func(E) (Object[T], bool)
	// Same reports whether two readings of an object mean the same; nil compares them.
	Same func(before, now T) bool
	// Unread is called with the reason if the objects of a namespace cannot be read; nil if that needs no action.
	Unread func(namespace, why string)
}

// Object is what is known of an object. Cluster is the RayCluster that it is for, and UID that of this RayCluster, or
// empty if the object has only the name.
type Object[T comparable] struct {
	Cluster nodepool.ClusterKey
	UID     string
	Value   T
}

// byCluster are objects by their RayCluster and their name.
type byCluster[T comparable] map[nodepool.ClusterKey]map[string]Object[T]

func (b byCluster[T]) add(name string, object Object[T]) {
	if b[object.Cluster] == nil {
		b[object.Cluster] = map[string]Object[T]{}
	}
	b[object.Cluster][name] = object
}

// State says what is known of the objects of a namespace. Unknown says why they are unknown; it is empty if they are
// known. Tried: they have been read, or cannot be.
type State struct {
	Unknown string
	Tried   bool
}

// Objects are the objects of one kind.
type Objects[E Named, T comparable] struct {
	config Config
	kind   Kind[E, T]
	// tried is closed when the objects of all namespaces have been read, or cannot be.
	tried     chan struct{}
	triedOnce sync.Once

	mu sync.RWMutex
	// Guarded by mu. state says by namespace what is known of the objects.
	all   byCluster[T]
	state map[string]State
}

// untyped are objects of a kind that the API server may not have.
type untyped[T comparable] = Objects[*unstructured.Unstructured, T]

// New prepares the reads; Start begins them.
func New[E Named, T comparable](c Config, kind Kind[E, T]) *Objects[E, T] {
	if len(c.Namespaces) == 0 {
		c.Namespaces = []string{metav1.NamespaceAll}
	}
	o := &Objects[E, T]{config: c, kind: kind, tried: make(chan struct{}), all: byCluster[T]{},
		state: map[string]State{}}
	for _, namespace := range c.Namespaces {
		o.state[namespace] = State{Unknown: "they have not been read yet"}
	}
	return o
}

// Start reads until ctx ends.
func (o *Objects[E, T]) Start(ctx context.Context) error {
	reflector.Each(slices.Values(o.config.Namespaces), func(namespace string) {
		unread := func(why string) { o.Unread(namespace, why) }
		source := o.kind.Served.Source(o.kind.Resource, namespace, o.kind.Selector, unread)
		if o.kind.Source != nil {
			source = o.kind.Source(namespace)
		}
		source.Into(ctx, o.Store(namespace))
	})
	return nil
}

// Await returns when the objects of all namespaces have been read, or cannot be, or with the reason why ctx ended.
func (o *Objects[E, T]) Await(ctx context.Context) error {
	select {
	case <-o.tried:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Store takes what is read of a namespace, or of all.
func (o *Objects[E, T]) Store(namespace string) *reflector.Store[E] {
	return &reflector.Store[E]{
		Added: func(object E) { o.put(object, true) }, Put: func(object E) { o.put(object, false) },
		Remove: o.remove, Strip: o.kind.Strip,
		ReplaceAll: func(list []E, _ string) { o.replace(namespace, list, State{Tried: true}) },
	}
}

// Unread notes why the objects of a namespace, or of all, cannot be read.
func (o *Objects[E, T]) Unread(namespace, why string) {
	news := o.replace(namespace, nil, State{Unknown: why, Tried: true})
	if news && o.kind.Unread != nil {
		o.kind.Unread(namespace, why)
	}
}

// put keeps an object. One that is no longer for a RayCluster, because its owner was removed, is forgotten. Nothing is
// known of one that was added, so no other RayCluster is searched for it: new pods are frequent in a large fleet.
func (o *Objects[E, T]) put(object E, added bool) {
	now, is := o.kind.Read(object)
	var before Object[T]
	var was bool
	o.mu.Lock()
	if !added {
		before, was = o.drop(object, now.Cluster)
	}
	if is {
		o.all.add(object.GetName(), now)
	}
	o.mu.Unlock()
	if was && (!is || before.Cluster != now.Cluster) {
		o.config.Changed(before.Cluster)
	}
	if is && !(was && o.same(before, now)) {
		o.config.Changed(now.Cluster)
	}
}

func (o *Objects[E, T]) same(before, now Object[T]) bool {
	if o.kind.Same == nil {
		return before == now
	}
	return before.Cluster == now.Cluster && before.UID == now.UID && o.kind.Same(before.Value, now.Value)
}

func (o *Objects[E, T]) remove(object E) {
	was, _ := o.kind.Read(object)
	o.mu.Lock()
	before, known := o.drop(object, was.Cluster)
	o.mu.Unlock()
	if known {
		o.config.Changed(before.Cluster)
	}
}

// drop forgets an object, and returns what was known of it. It is likely for a RayCluster, and somebody may have made
// it one for another. The caller holds mu.
func (o *Objects[E, T]) drop(object E, likely nodepool.ClusterKey) (before Object[T], was bool) {
	key, name := likely, object.GetName()
	if _, was = o.all[likely][name]; !was {
		for key = range o.all {
			if _, was = o.all[key][name]; was && key.Namespace == object.GetNamespace() {
				break
			}
			was = false
		}
	}
	if before = o.all[key][name]; was {
		if delete(o.all[key], name); len(o.all[key]) == 0 {
			delete(o.all, key)
		}
	}
	return before, was
}

// replace takes a whole list of a namespace, or of all: the first one, the one after a watch broke, or none if they
// cannot be read. It reports whether the state is another one.
func (o *Objects[E, T]) replace(namespace string, list []E, state State) (news bool) {
	fresh, changed := byCluster[T]{}, map[nodepool.ClusterKey]bool{}
	for _, object := range list {
		if now, is := o.kind.Read(object); is {
			fresh.add(object.GetName(), now)
		}
	}
	o.mu.Lock()
	news = o.state[namespace] != state
	o.state[namespace] = state
	for key := range fresh {
		changed[key] = o.all[key] == nil
	}
	for key, before := range o.all {
		if namespace == metav1.NamespaceAll || key.Namespace == namespace {
			changed[key] = news || !maps.EqualFunc(before, fresh[key], o.same)
			delete(o.all, key)
		}
	}
	maps.Copy(o.all, fresh)
	allTried := !slices.ContainsFunc(o.config.Namespaces, func(each string) bool { return !o.state[each].Tried })
	o.mu.Unlock()
	if allTried {
		o.triedOnce.Do(func() { close(o.tried) })
	}
	for key, is := range changed {
		if is {
			o.config.Changed(key)
		}
	}
	return news
}

// Clusters lists the RayClusters, existing or not, that have objects.
func (o *Objects[E, T]) Clusters() []nodepool.ClusterKey {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return slices.Collect(maps.Keys(o.all))
}

// Of returns the objects of exactly this RayCluster, in no order, and what is known of those of its namespace.
func (o *Objects[E, T]) Of(key nodepool.ClusterKey, uid string) (values []T, state State) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	values = slices.Grow(values, len(o.all[key]))
	for _, object := range o.all[key] {
		if object.UID == uid {
			values = append(values, object.Value)
		}
	}
	for _, namespace := range []string{key.Namespace, metav1.NamespaceAll} {
		if state, known := o.state[namespace]; known {
			return values, state
		}
	}
	return values, State{Unknown: "this process does not serve namespace " + key.Namespace, Tried: true}
}

// madeLabel is the label of all objects that Heliostat makes for RayClusters, with the value madeBy. The selector Made
// selects them.
const (
	madeLabel, madeBy = "app.kubernetes.io/managed-by", "heliostat"
	Made              = madeLabel + "=" + madeBy
)

const (
	// autoscalingGroup is the API group of ProvisioningRequests and CapacityBuffers.
	autoscalingGroup = "autoscaling.x-k8s.io"
	// groupAnnotation names the worker group that an object is for.
	groupAnnotation = "heliostat.dev/group"
)

// madeFor returns an object for a RayCluster. The RayCluster owns it, so that it goes with the RayCluster.
func madeFor(
	rayCluster *unstructured.Unstructured, name string, annotations map[string]string, content map[string]any,
) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: content}
	object.SetNamespace(rayCluster.GetNamespace())
	object.SetName(name)
	object.SetLabels(map[string]string{madeLabel: madeBy})
	object.SetAnnotations(annotations)
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: rayCluster.GetAPIVersion(),
		Kind: rayCluster.GetKind(), Name: rayCluster.GetName(), UID: rayCluster.GetUID()}})
	return object
}

// owner returns the RayCluster that an object was made for; false for one that is not Heliostat's.
func owner(object *unstructured.Unstructured) (key nodepool.ClusterKey, uid string, ours bool) {
	made := object.GetLabels()[madeLabel] == madeBy && object.GetAnnotations()[groupAnnotation] != ""
	for _, reference := range object.GetOwnerReferences() {
		if made && reference.Kind == "RayCluster" {
			key = nodepool.ClusterKey{Namespace: object.GetNamespace(), Name: reference.Name}
			return key, string(reference.UID), true
		}
	}
	return key, "", false
}

// podTemplate returns the PodTemplate for pods of a group, without a name, and what identifies its content. labels are
// those of the pods: KubeRay adds some, and anti-affinity and spread constraints may select them. What else KubeRay
// adds, no scheduler looks at, except for a small init container. A group that is not there, or has no template, is
// nodepool.ErrConflict.
//
// It says which node the pods need. Commands, environments and mounts are left out: they may have secrets that not
// everybody with the right to read PodTemplates may see, and a change of them needs no other node. So are scheduling
// gates, behind which a pod has no node at all, and the name of a node.
func podTemplate(
	rayCluster *unstructured.Unstructured, group string, labels map[string]string,
) (pods *unstructured.Unstructured, content string, err error) {
	var from corev1.PodTemplateSpec
	groups, _, err := unstructured.NestedSlice(rayCluster.Object, "spec", "workerGroupSpecs")
	at := slices.IndexFunc(groups, func(each any) bool {
		fields, _ := each.(map[string]any)
		_, hasTemplate := fields["template"].(map[string]any)
		return hasTemplate && fields["groupName"] == group
	})
	switch {
	case err != nil:
	case at < 0:
		err = fmt.Errorf("there is none with a template: %w", nodepool.ErrConflict)
	default:
		template, _, _ := unstructured.NestedMap(groups[at].(map[string]any), "template")
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(template, &from)
	}
	if err != nil {
		return nil, "", fmt.Errorf("worker group %s of RayCluster %s/%s: %w", group, rayCluster.GetNamespace(),
			rayCluster.GetName(), err)
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
	for name, value := range labels {
		metav1.SetMetaDataLabel(&kept.ObjectMeta, name, value)
	}
	for _, volume := range pod.Volumes {
		bound := corev1.VolumeSource{CSI: volume.CSI, Ephemeral: volume.Ephemeral,
			PersistentVolumeClaim: volume.PersistentVolumeClaim}
		if bound != (corev1.VolumeSource{}) { // it binds a pod to a zone or a driver
			kept.Spec.Volumes = append(kept.Spec.Volumes, corev1.Volume{Name: volume.Name, VolumeSource: bound})
		}
	}
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(kept)
	if err != nil {
		return nil, "", fmt.Errorf("worker group %s: %w", group, err)
	}
	text, err := json.Marshal(template) // with sorted keys
	sum := sha256.Sum256(text)
	pods = madeFor(rayCluster, "", map[string]string{groupAnnotation: group},
		map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "template": template})
	return pods, hex.EncodeToString(sum[:16]), err
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

var templates = corev1.SchemeGroupVersion.WithResource("podtemplates")

// podTemplates is the client of the PodTemplates that objects of the kind name.
func (o *Objects[E, T]) podTemplates(namespace string) dynamic.ResourceInterface {
	return o.config.Client.Resource(templates).Namespace(namespace)
}

// client returns the client of the kind in a namespace, and its version.
func (o *Objects[E, T]) client(kinds, namespace string) (dynamic.ResourceInterface, string, error) {
	version, err := o.kind.Served.Version()
	if err != nil {
		return nil, "", fmt.Errorf("finding the version of %s: %w", kinds, err)
	}
	of := schema.GroupVersionResource{Group: o.kind.Served.Group, Version: version, Resource: o.kind.Resource}
	return o.config.Client.Resource(of).Namespace(namespace), version, nil
}

// remove deletes an object. One that somebody made again under the same name is a conflict; an empty uid means any.
func remove(ctx context.Context, client dynamic.ResourceInterface, kind, namespace, name string, uid types.UID) error {
	options := metav1.DeleteOptions{}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := client.Delete(ctx, name, options)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %s/%s: %w", kind, namespace, name, err)
	}
	return nil
}
