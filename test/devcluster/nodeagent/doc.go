// Package nodeagent makes Kubernetes nodes whose pods are processes of this machine.
//
// Each node announces whatever capacity, labels and taints its NodeSpec names, so a laptop can offer GPUs it does
// not have. A pod bound to such a node gets a loopback address of its own, its init containers run in order, and
// every container becomes a process with the pod's command, environment and volumes. The node and pod controllers
// are those of virtual-kubelet; this package is the runtime below them.
//
// It refuses to be a container runtime: an image is only a directory of programs (Images), CPU and memory limits
// are not enforced, and nothing is hidden from the process that the user could not see.
//
// # How a pod's processes end
//
// Where the machine allows it, every container gets a PID namespace: its command is process 1 there, and when it
// ends, by itself or by SIGKILL, the kernel ends everything that came from it, process groups and daemons
// included. Where PID namespaces are not available, the command's descendants and every process that carries the
// container's mark in its environment (HELIOSTAT_CONTAINER) are killed instead. Nothing is ever ended by name.
package nodeagent
