// Package fleet is a fleet of RayClusters without a Ray: the real KubeRay operator makes their pods, and this package
// plays the kubelets of all machines and a Ray head for each RayCluster. It reports what really happens as facts to a
// judge. It knows no faults except those that heads and machines have.
package fleet
