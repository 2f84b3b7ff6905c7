// Package v1alpha1 defines the Kubernetes objects of Heliostat. With a ResourceRequest, an owner requests capacity of
// one RayCluster. So that other programs can use it, the package must not depend on modules other than apimachinery.
//
// +kubebuilder:object:generate=true
// +groupName=heliostat.dev
package v1alpha1

//go:generate go tool -modfile=../../tools/go.mod controller-gen object paths=.
//go:generate go tool -modfile=../../tools/go.mod controller-gen crd:allowDangerousTypes=true paths=. output:crd:dir=../../deploy/chart/crds
