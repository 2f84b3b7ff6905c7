// Package e2e tests the whole loop on the dev cluster: a real API server, the real KubeRay operator, real Ray, and
// Heliostat as a process of its own. What is asserted is read from the Kubernetes API, from Ray's GCS and from inside
// the work, never from Heliostat alone.
//
// All tests share one control plane and one Heliostat, each has a namespace and RayClusters of its own. Those that only
// look after their own namespace run side by side; those that kill a shared part run alone, after them.
package e2e
