// Package simray is a Ray head in Go that speaks the GCS wire: the services Heliostat calls and a few that change what
// they return. It is for scale and faults, where a real Ray is too slow or too healthy: a thousand heads fit into one
// process, time is a parameter, and each may be slow, lie, refuse, restart, or die of what kills a live GCS.
//
// What it answers was learned from live heads of Ray 2.40.0, 2.52.0 and 2.60.0; package conformance holds it and them
// to one list of assertions. It schedules simply (first fit in order of arrival): it is no model of Ray's scheduler.
package simray
