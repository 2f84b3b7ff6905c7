// Package podruntime runs one pod: its init containers, sidecars and containers, their restarts and probes, its status,
// logs and exec, and its end.
//
// It must not know nodes or the pod controller, and must not write to the API server.
package podruntime
