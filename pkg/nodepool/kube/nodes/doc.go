// Package nodes keeps up to date what nodes are and what node autoscalers say: nodes, the pods on them, the devices of
// claims, how far pools of nodes may grow (the Cluster Autoscaler's status, Karpenter's NodePools), Karpenter's
// NodeClaims, and Events about machines. Watch adds all of it to a nodepool.Cluster that was just read. A deployment
// may not have the right to read some of it: everything else works then, and a finding says what is unknown.
//
// The package must not write to the API server, read RayClusters or ResourceRequests, or decide anything.
package nodes
