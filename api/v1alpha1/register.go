package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of all objects of this package.
var GroupVersion = schema.GroupVersion{Group: "heliostat.dev", Version: "v1alpha1"}

// Resource is the plural that ResourceRequests are addressed by.
var Resource = GroupVersion.WithResource("resourcerequests")

// Kind is the kind of a ResourceRequest.
const Kind = "ResourceRequest"

// AddToScheme makes a client know the objects.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ResourceRequest{}, &ResourceRequestList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
