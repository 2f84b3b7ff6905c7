// Package e2e tests the whole loop on the dev cluster: a real API server, the real KubeRay operator, real Ray, and
// Heliostat in its own process. It must not rely on Heliostat's own reports alone: assertions read the Kubernetes API,
// Ray's GCS and the workload.
//
// All tests share one control plane and one Heliostat. Each test has its own namespace and RayClusters. Tests that kill
// a shared component run first and one at a time. The other tests then run in parallel.
package e2e
