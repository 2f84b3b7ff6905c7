// Package rig runs the whole product on one machine: the dev cluster, Heliostat in its own process, real RayClusters
// and real Ray drivers. It records events and their times in a Journal. It reads them from the Kubernetes API, from
// Ray's GCS and from the workload. The demo, the end-to-end tests, the churn test and the benchmarks use it.
//
// It must not read facts from Heliostat, so that tests can compare the facts with what Heliostat reports.
package rig
