// Package probe runs the probes of a container with the rules of the kubelet: exec, httpGet and tcpSocket, in periods,
// with thresholds.
//
// It must not decide what a result means for the container, and must not know processes or clients.
package probe
