// Package gcs is the gRPC client for the GCS of a Ray head. It reads the state of the cluster, drains nodes, and
// reports to Ray, in the types of package raydemand. It must not make scaling decisions. It must not send a request
// that crashes a GCS or raylet: a node id that is not 28 bytes, a state version ahead of the server's, or drain reason
// 0. It reports invalid data from a head as a Finding.
//
// The package supports the wire formats of Ray 2.40.0, 2.52.0 and 2.60.0. Directory testdata holds replies recorded
// from real heads.
package gcs
