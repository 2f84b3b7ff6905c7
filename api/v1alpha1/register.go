package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of all objects in this package.
var GroupVersion = schema.GroupVersion{Group: "heliostat.dev", Version: "v1alpha1"}

// Resource is the resource of ResourceRequests.
var Resource = GroupVersion.WithResource("resourcerequests")

// Kind is the kind of a ResourceRequest.
const Kind = "ResourceRequest"

// AddToScheme adds the objects to the scheme of a client.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ResourceRequest{}, &ResourceRequestList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
