// Package e2e tests the whole loop on the dev cluster: a real API server, the real KubeRay operator, real Ray, and
// Heliostat as a process of its own. What is asserted is read from the Kubernetes API, from Ray's GCS and from inside
// the work, never from Heliostat alone.
//
// All tests share one control plane and one Heliostat, each has a namespace and RayClusters of its own. Those that kill
// a shared part run alone and first; those that only look after their own namespace then run side by side.
package e2e
