// Package nodeobject reads the objects that say what nodes are and how many there can be: Nodes, Pods, ResourceSlices
// and ResourceClaims, Karpenter's NodePools and NodeClaims, the Cluster Autoscaler's status, and the pools file. It
// converts them into the types of sharing and landing.
//
// The package must not call the API server or know RayClusters: package kube lists these objects, and package watch
// keeps them up to date.
package nodeobject
