// Package watch keeps up to date what a deployment may or may not have the right to read: nodes, the ceilings of their
// pools, Karpenter's NodeClaims, Events of node autoscalers, and the settings of namespaces. Optional adds it to a
// nodepool.Cluster that was just read. Without a right everything else works, and a finding says what is unknown.
//
// The package must not write to the API server, read RayClusters or ResourceRequests, or decide anything.
package watch
