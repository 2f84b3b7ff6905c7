// Package engine runs Heliostat: the process that observes, plans and applies until a signal ends it. It connects the
// loop with Kubernetes, with heads of Ray, with the REST API and with telemetry, starts them in order, and ends them in
// the reverse one. `serve` and the sidecar are two commands for the same process, and all that the rest of the program
// knows of it.
//
// It has the ports with their TLS, who may call (TokenReviews and SubjectAccessReviews of the API server, whose results
// it keeps for a moment), the memory limit of the Go runtime, and in a sidecar Ray's own credentials from the
// environment: the Role that KubeRay grants a sidecar does not include reading Secrets. It exposes decisions as the
// REST server's views and history, as metrics, and as spans. It must not decide about scaling, print answers, or call a
// server as users do.
package engine
