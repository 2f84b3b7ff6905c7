// Package engine runs Heliostat: the process that observes, plans and applies until a signal ends it. It connects the
// loop with Kubernetes, with heads of Ray, with the REST API and with telemetry, starts them in order, and ends them in
// the reverse one. `serve` and the sidecar are two commands for the same process, and all that the rest of the program
// knows of it. It must not decide about scaling, print answers, or call a server as users do.
package engine
