// Package devcluster runs a real Kubernetes control plane (etcd, kube-apiserver, kube-scheduler,
// kube-controller-manager), the real KubeRay operator and nodes whose pods are real processes on one Linux machine,
// without containers and without root.
//
// Every program is built from pinned Go modules and kept in a cache, Ray comes from pinned Python packages in a virtual
// environment of its own. A cluster has its own loopback addresses and its own directory, so several run side by side,
// and it leaves nothing behind: not when it is stopped, and not when the process that holds it is killed.
//
// It is made for tests and for daily work on one machine. It does not isolate pods from the machine, and everybody on
// the machine can reach it: never run it where that matters.
package devcluster
