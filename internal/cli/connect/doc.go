// Package connect finds servers as kubectl does: the flags and the kubeconfig by which a command reaches a Heliostat
// server or the API server, the tokens that it sends, the RayCluster that an argument names, and names to complete or
// suggest. It returns a ready client. It must not decide what a command requests, nor write its answer.
package connect
