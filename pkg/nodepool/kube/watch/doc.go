// Package watch reads what a deployment may or may not have the right to read, and keeps it up to date: nodes, the
// pods on them, the devices of claims, and Karpenter's NodeClaims. Optional adds all of it to a nodepool.Cluster that
// was just read, with what the packages ceilings, events and namespaces read. If a right is missing, everything else
// works, and a finding says what is unknown.
//
// The package must not write to the API server, read RayClusters or ResourceRequests, or decide anything.
package watch
