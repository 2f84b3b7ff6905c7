// Package simray simulates a Ray head in Go. It implements the GCS services that Heliostat calls, and a few that change
// what those services return. It is for tests of scale and faults, for which a real Ray is too slow or too reliable. A
// thousand heads fit into one process, and a test controls their time. A head can be slow, send invalid data, reject
// calls, restart, or crash on a request that crashes a real GCS.
//
// The answers are those of real heads of Ray 2.40.0, 2.52.0 and 2.60.0. Package conformance checks simray and real
// heads with one list of assertions. Scheduling is simple: first fit, in order of arrival. Tests must not use the
// package as a model of Ray's scheduler.
package simray
