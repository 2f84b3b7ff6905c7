// Package loopback is the network of pods on one machine: addresses in 127.0.0.0/8, ports that are free on all
// addresses, and forwarders between ports.
//
// It must not know pods or any other Kubernetes object.
package loopback
