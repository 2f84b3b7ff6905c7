package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/dra"
	"heliostat.dev/heliostat/pkg/nodepool/kube/requests"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// selecting are the kinds that may select an existing RayCluster instead of having the spec of one.
var selecting = []string{"RayJob", "RayCronJob"}

// Read decodes RayClusters, with their pods, and nodes. It keeps objects of kinds that no check knows. devices has what
// is known of devices without the objects; nil is nothing. The error names the object and the field that cannot be
// read.
func Read(objects []map[string]any, reader sharing.Reader, devices *dra.Objects) (Input, error) {
	if devices == nil {
		devices = &dra.Objects{}
	}
	input := Input{Reader: reader}
	pods, ranges, unreadable := companionsOf(objects)
	for i, fields := range objects {
		object, err := describe(fields, pods, ranges, reader)
		if err != nil {
			return input, err
		}
		object.Unreadable = append(object.Unreadable, unreadable[i]...)
		if object.Kind == "ConfigMap" || object.Kind == "NodePool" && object.Read() {
			var ceilings []landing.Ceiling
			ceilings, object.Unreadable = ceilingsIn(fields)
			input.Ceilings = append(input.Ceilings, ceilings...)
		}
		if decode.HasDevices(object.APIVersion()) {
			object.Unreadable = append(object.Unreadable, readDevices(&object, devices)...)
		}
		input.Objects = append(input.Objects, object)
	}
	addDevices(input.Objects, reader, devices)
	input.Open = devices.OnNewNodes().Open
	return input, nil
}

// addDevices reads the GPUs of nodes with their devices, adds to nodes what these supply, and to groups their claims.
func addDevices(objects []Object, reader sharing.Reader, devices *dra.Objects) {
	byNode, claims := devices.GPUs(), devices.Claims()
	supplies, others := devices.ByNode()
	for _, object := range objects {
		if object.Node != nil {
			object.Node.GPUs.Devices = byNode[object.Name]
			read := reader.Read(object.Node.GPUs)
			object.Node.Fit.GPUs = &read
			supply, known := supplies[object.Name]
			if !known {
				supply = others
			}
			supply.AddTo(&object.Node.Fit)
		}
		if object.Head != nil {
			claims.AddTo(object.Namespace, &object.Head.Pod)
		}
		if object.Cluster != nil {
			object.Cluster.Findings = append(object.Cluster.Findings, claims.AddToGroups(object.Cluster)...)
		}
	}
}

// readDevices keeps what an object of Dynamic Resource Allocation says.
func readDevices(object *Object, devices *dra.Objects) (unreadable []string) {
	typed := dra.New(object.Kind)
	if typed == nil {
		return nil
	}
	if unreadable = decode.Typed(object.Fields, typed); len(unreadable) > 0 {
		return unreadable
	}
	if err := dra.Check(typed); err != nil {
		return []string{err.Error()}
	}
	devices.Put(typed)
	return nil
}

// ceilingsIn reads how far pools of nodes may grow. An object that cannot be read has no ceilings: the pool may grow.
func ceilingsIn(fields map[string]any) (ceilings []landing.Ceiling, unreadable []string) {
	var set decode.NodeSet
	if err := set.Add(fields); err != nil {
		return nil, []string{err.Error()}
	}
	return set.Ceilings, set.Notes
}

func describe(
	fields map[string]any, pods map[nodepool.ClusterKey][]*decode.Pod, ranges map[string][]*corev1.LimitRange,
	reader sharing.Reader,
) (Object, error) {
	at := unstructured.Unstructured{Object: fields}
	object := Object{Kind: at.GetKind(), Namespace: at.GetNamespace(), Name: at.GetName(), Fields: fields}
	if start := at.GetGenerateName(); object.Name == "" && start != "" {
		object.Name, object.Generated = start+"*", true
	}
	if err := named(object); err != nil {
		return object, err
	}
	if path, hasSpec := decode.SpecPaths[object.Kind]; hasSpec && object.Read() {
		spec, found, err := unstructured.NestedFieldNoCopy(fields, path...)
		inner, isObject := spec.(map[string]any)
		switch {
		case err != nil:
			return object, fmt.Errorf("%s: %w", object.String(), err)
		case !found && slices.Contains(selecting, object.Kind):
			return object, nil
		case spec == nil && len(object.bySchema().unknown) > 0: // such as rayClusterSpec in a RayService
			return object, nil
		case spec == nil:
			return object, fmt.Errorf("%s: %s is missing: want the spec of a RayCluster",
				object.String(), strings.Join(path, "."))
		case !isObject:
			return object, fmt.Errorf("%s: %s is %s: want the spec of a RayCluster",
				object.String(), strings.Join(path, "."), shown(spec))
		}
		rayCluster := &unstructured.Unstructured{Object: decode.AsCluster(fields, inner)}
		var own []*decode.Pod
		if object.Kind == "RayCluster" {
			own = pods[nodepool.ClusterKey{Namespace: object.Namespace, Name: object.Name}]
		}
		d, head := decode.Decode(reader, rayCluster), decode.HeadGroup(reader, rayCluster)
		if ranges := ranges[object.Namespace]; len(ranges) > 0 {
			decode.UnderLimitRanges(rayCluster, &d, &head, ranges)
		}
		kube.Judge(rayCluster.Object, &d)
		cluster := decode.Join(d, own)
		for i, f := range cluster.Findings {
			switch refused := &cluster.Findings[i].Code; {
			case *refused != decode.PodsRefused:
			case strings.HasPrefix(f.Why, "LimitRange "):
				*refused = limitRangeRefuses
			case strings.HasSuffix(f.Field, ".groupName"):
				*refused = groupNameUnsuitable
			}
		}
		object.Cluster, object.Head, object.Spec = &cluster, &head, path
	}
	if object.Read() {
		describeOurs(&object, &at)
	}
	if object.Kind == "Node" && object.Read() {
		gpus, fit, err := decode.Read(reader, fields)
		if err != nil {
			return object, fmt.Errorf("%s: %w", object.String(), err)
		}
		object.Node = &nodeViews{GPUs: gpus, Fit: fit}
	}
	return object, nil
}

// describeOurs reads a CapacityPolicy of an earlier release, or a ResourceRequest as serve does.
func describeOurs(object *Object, at *unstructured.Unstructured) {
	switch object.Kind {
	case "CapacityPolicy":
		object.RayCluster, _, _ = unstructured.NestedString(at.Object, "spec", "rayCluster")
	case "ResourceRequest":
		request := requests.Decode(at)
		object.RayCluster = request.Cluster.Name
		switch {
		case request.Unreadable != "":
			object.Unreadable = []string{request.Unreadable}
		case object.RayCluster == "":
			object.Unreadable = []string{"spec.rayCluster: want the name of a RayCluster of the namespace"}
		case len(request.Requests) == 0:
			object.Unreadable = []string{"spec.bundles: want at least one kind of bundle"}
		}
	}
}

// named returns an error if an object has no metadata or name, or if its name or namespace is no string.
func named(object Object) error {
	metadata := object.Root().Get("metadata")
	if _, isObject := metadata.Raw().(map[string]any); metadata.Has() && !isObject {
		return fmt.Errorf("%s: metadata is %s: want an object with the name", object.Kind, metadata)
	}
	for _, key := range []string{"name", "namespace"} {
		if _, isText := metadata.Get(key).Raw().(string); metadata.Has(key) && !isText {
			return fmt.Errorf("%s: metadata.%s is %s: want a string", object.Kind, key, metadata.Get(key))
		}
	}
	if object.Name == "" {
		return fmt.Errorf("%s: metadata.name is missing: want the name of the object", object.Kind)
	}
	return nil
}

// limitRangeRefuses and groupNameUnsuitable are what plans call pods-refused, if it is a LimitRange or the name of the
// group for which the API server refuses them.
const (
	limitRangeRefuses   = "limit-range-refuses"
	groupNameUnsuitable = "group-name-unsuitable"
)

// companionsOf reads the pods of RayClusters and the LimitRanges of namespaces. It also returns, by the number of an
// object, what cannot be read in it, or in a ResourceQuota.
func companionsOf(objects []map[string]any) (
	pods map[nodepool.ClusterKey][]*decode.Pod, ranges map[string][]*corev1.LimitRange, unreadable map[int][]string,
) {
	pods, ranges = map[nodepool.ClusterKey][]*decode.Pod{}, map[string][]*corev1.LimitRange{}
	unreadable = map[int][]string{}
	for i, fields := range objects {
		switch kind := fields["kind"]; {
		case kind == "Pod":
			pod, err := decode.ReadPod(fields)
			if err != nil {
				unreadable[i] = []string{err.Error()}
			} else if pod.Labels["ray.io/cluster"] != "" {
				kept := decode.PodOf(pod)
				pods[kept.RayCluster] = append(pods[kept.RayCluster], kept)
			}
		case fields["apiVersion"] != nil && fields["apiVersion"] != "v1":
		case kind == "LimitRange":
			in := &corev1.LimitRange{}
			if unreadable[i] = decode.TypedLimits(fields, in); len(unreadable[i]) == 0 {
				ranges[in.Namespace] = append(ranges[in.Namespace], in)
			}
		case kind == "ResourceQuota":
			unreadable[i] = decode.TypedLimits(fields, &corev1.ResourceQuota{})
		}
	}
	return pods, ranges, unreadable
}

// Kind is a kind of objects that checks examine.
type Kind struct {
	Name string
	// Group is the API group, empty for the core group. Versions are those that checks read, the preferred one first.
	Group    string
	Versions []string
	// Namespaced kinds are listed in a namespace, others in the whole cluster. Deployments count as others, because the
	// operator and Heliostat have a namespace of their own.
	Namespaced bool
	// Own kinds have a name that no other API uses: those of Ray and of Heliostat.
	Own bool
}

// apiVersions returns every apiVersion of the kind that checks read.
func (k Kind) apiVersions() []string {
	var all []string
	for _, version := range k.Versions {
		all = append(all, schema.GroupVersion{Group: k.Group, Version: version}.String())
	}
	return all
}

// Kinds are the kinds that checks examine, in the order in which they are listed. The versions are those of Kubernetes
// 1.25 and later, and of the releases of the other projects that serve them.
var Kinds = []Kind{
	{"RayCluster", "ray.io", []string{"v1", "v1alpha1"}, true, true},
	{"RayService", "ray.io", []string{"v1", "v1alpha1"}, true, true},
	{"RayJob", "ray.io", []string{"v1", "v1alpha1"}, true, true},
	{"RayCronJob", "ray.io", []string{"v1"}, true, true},
	{"Pod", "", []string{"v1"}, true, false},
	{"Node", "", []string{"v1"}, false, false},
	{"Deployment", "apps", []string{"v1"}, false, false},
	{"ResourceClaim", "resource.k8s.io", []string{"v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"}, true, false},
	{"ResourceClaimTemplate", "resource.k8s.io", []string{"v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"}, true,
		false},
	{"ResourceSlice", "resource.k8s.io", []string{"v1", "v1beta2", "v1beta1", "v1alpha3"}, false, false},
	{"DeviceClass", "resource.k8s.io", []string{"v1", "v1beta2", "v1beta1", "v1alpha3"}, false, false},
	{"NodePool", "karpenter.sh", []string{"v1", "v1beta1"}, false, false},
	{"LimitRange", "", []string{"v1"}, true, false},
	{"ResourceQuota", "", []string{"v1"}, true, false},
	{"PersistentVolumeClaim", "", []string{"v1"}, true, false},
	{"PodDisruptionBudget", "policy", []string{"v1"}, true, false},
	{"CapacityPolicy", "heliostat.dev", []string{"v1alpha1"}, true, true},
	{"ResourceRequest", "heliostat.dev", []string{"v1alpha1"}, true, true},
	{"CapacityBuffer", "autoscaling.x-k8s.io", []string{"v1beta1", "v1alpha1"}, true, false},
}

// kindNamed returns the kind of a name, if checks examine it.
func kindNamed(name string) (Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds[i], true
}

// APIVersion returns the apiVersion of the object.
func (o *Object) APIVersion() string { return o.Root().Text("apiVersion") }

// Group returns the API group of the object, empty for the core group.
func (o *Object) Group() string {
	group, _, found := strings.Cut(o.APIVersion(), "/")
	if !found {
		return ""
	}
	return group
}

// Read reports whether checks read the object as its kind. Its apiVersion may be of another API that has a kind of the
// same name, or a version that checks do not know. An excerpt without an apiVersion counts, except of Ray's and
// Heliostat's kinds.
func (o *Object) Read() bool {
	k, known := kindNamed(o.Kind)
	version := o.Root().Get("apiVersion")
	return known && (slices.Contains(k.apiVersions(), version.Text()) || !k.Own && !version.Has())
}

// Examined reports whether checks examine the object. The Cluster Autoscaler's status is a ConfigMap of one name.
// Limits of a namespace that cannot be read are not examined.
func (o Object) Examined() bool {
	limits := o.Kind == "LimitRange" || o.Kind == "ResourceQuota"
	if limits && len(o.Unreadable) > 0 {
		return false
	}
	return o.Read() || o.Kind == "ConfigMap" && o.Name == "cluster-autoscaler-status"
}
