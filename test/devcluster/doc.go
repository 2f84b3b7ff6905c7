// Package devcluster runs a real Kubernetes control plane (etcd, kube-apiserver, kube-scheduler,
// kube-controller-manager), the real KubeRay operator and nodes whose pods are real processes on one Linux machine,
// without containers and without root.
//
// It builds every program from pinned Go modules into a cache, and installs Ray from pinned Python packages into a
// virtual environment. A cluster has its own loopback addresses and its own directory, so several run side by side, and
// it leaves nothing behind, neither after Stop nor when its process is killed.
//
// It is for tests and for daily work on one machine. It does not isolate pods from the machine, and every user of the
// machine can reach it: do not run it where that matters.
package devcluster
