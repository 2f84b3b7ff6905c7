// Package v1alpha1 has the Kubernetes objects of Heliostat: with a ResourceRequest, an owner requests capacity of one
// RayCluster. It depends on apimachinery only, so that other programs can use it.
//
// +kubebuilder:object:generate=true
// +groupName=heliostat.dev
package v1alpha1

//go:generate go tool -modfile=../../tools/go.mod controller-gen object paths=.
//go:generate go tool -modfile=../../tools/go.mod controller-gen crd:allowDangerousTypes=true paths=. output:crd:dir=../../deploy/chart/crds
