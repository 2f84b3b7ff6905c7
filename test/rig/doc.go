// Package rig puts the whole product together on one machine: the dev cluster, Heliostat as a process of its own, real
// RayClusters and real Ray drivers. Around them it keeps a Journal of what happened and when, read from the
// Kubernetes API, from Ray's GCS and from inside the work itself. The demo, the end-to-end tests, the churn test and
// the benchmarks use it.
//
// It never asks Heliostat what Heliostat did, so its facts can be compared with what Heliostat reports.
package rig
