// Package gcs reads a Ray head's state and acts on it over gRPC: the adapter between Ray's GCS wire and package
// raydemand. It decides nothing. What kills a live GCS or raylet (a node id that is not 28 bytes, a state version
// ahead of the server's, drain reason 0) cannot be sent through it, and what a lying head sends becomes a Finding.
//
// The wire's facts are those of Ray 2.40.0, 2.52.0 and 2.60.0; testdata holds replies recorded from live heads.
package gcs
