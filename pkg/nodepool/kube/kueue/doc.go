// Package kueue reads Kueue's Workloads and ClusterQueues, and says what quota a queued RayCluster has, waits for, and
// may still get. A deployment may not have the right to read them, or no Kueue. The package must not decide anything,
// and must not write.
package kueue
