// Package watch reads what a deployment may or may not have the right to read, and keeps it up to date: nodes, the
// Cluster Autoscaler's status and Karpenter's NodePools (how far pools may grow), Karpenter's NodeClaims, the Events of
// node autoscalers and of the AWS node termination handler, and the settings of namespaces. Optional adds all of it to
// a nodepool.Cluster that was just read. If a right is missing, everything else works, and a finding says what is
// unknown.
//
// The package must not write to the API server, read RayClusters or ResourceRequests, or decide anything.
package watch
