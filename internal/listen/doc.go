// Package listen has the servers of `serve` and of the sidecar: their ports, TLS, who may call, and the flags for all
// of these. It fills the part of the REST API's configuration that is about callers. It must not know what the servers
// answer, except for probes and profiles: its caller passes in handlers. It must not know the loop or Kubernetes
// objects either; of Kubernetes it knows only that an API server reviews callers.
package listen
