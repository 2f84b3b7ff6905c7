package doctor

import (
	"slices"
	"strings"
)

// kind is a kind of objects that checks examine.
type kind struct {
	Name string
	// Group is the API group, empty for the core group. Versions are those that checks read, the preferred one first.
	Group    string
	Versions []string
	// Own kinds have a name that no other API uses: those of Ray and of Heliostat.
	Own bool
}

// APIVersion returns the apiVersion that objects of the kind should have.
func (k kind) APIVersion() string { return apiVersion(k.Group, k.Versions[0]) }

// apiVersions returns every apiVersion of the kind that checks read.
func (k kind) apiVersions() []string {
	var all []string
	for _, version := range k.Versions {
		all = append(all, apiVersion(k.Group, version))
	}
	return all
}

func apiVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

// The versions are those of Kubernetes 1.25 and later, and of the releases of the other projects that serve them.
var kinds = []kind{
	{"RayCluster", "ray.io", []string{"v1", "v1alpha1"}, true},
	{"RayJob", "ray.io", []string{"v1", "v1alpha1"}, true},
	{"RayService", "ray.io", []string{"v1", "v1alpha1"}, true},
	{"RayCronJob", "ray.io", []string{"v1"}, true},
	{"Node", "", []string{"v1"}, false},
	{"Pod", "", []string{"v1"}, false},
	{"Deployment", "apps", []string{"v1"}, false},
	{"HorizontalPodAutoscaler", "autoscaling", []string{"v2", "v1", "v2beta2"}, false},
	{"ScaledObject", "keda.sh", []string{"v1alpha1"}, false},
	{"ResourceClaim", "resource.k8s.io", []string{"v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"}, false},
	{"ResourceClaimTemplate", "resource.k8s.io", []string{"v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"}, false},
	{"ResourceSlice", "resource.k8s.io", []string{"v1", "v1beta2", "v1beta1", "v1alpha3"}, false},
	{"DeviceClass", "resource.k8s.io", []string{"v1", "v1beta2", "v1beta1", "v1alpha3"}, false},
	{"DeviceTaintRule", "resource.k8s.io", []string{"v1beta2", "v1alpha3"}, false},
	{"NodePool", "karpenter.sh", []string{"v1", "v1beta1"}, false},
	{"LimitRange", "", []string{"v1"}, false},
	{"ResourceQuota", "", []string{"v1"}, false},
	{"PersistentVolumeClaim", "", []string{"v1"}, false},
	{"PodDisruptionBudget", "policy", []string{"v1"}, false},
	{"LocalQueue", "kueue.x-k8s.io", []string{"v1beta2", "v1beta1"}, false},
	{"ClusterQueue", "kueue.x-k8s.io", []string{"v1beta2", "v1beta1"}, false},
	{"ResourceFlavor", "kueue.x-k8s.io", []string{"v1beta2", "v1beta1"}, false},
	{"CapacityPolicy", "heliostat.dev", []string{"v1alpha1"}, true},
	{"ResourceRequest", "heliostat.dev", []string{"v1alpha1"}, true},
	{"CapacityBuffer", "autoscaling.x-k8s.io", []string{"v1beta1", "v1alpha1"}, false},
}

// kindNames are the names of the kinds that checks examine.
func kindNames() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// kindNamed returns the kind of a name, if checks examine it.
func kindNamed(name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.Name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
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
func (o Object) Examined() bool {
	return o.Read() || o.Kind == "ConfigMap" && o.Name == "cluster-autoscaler-status"
}
