// Package nodeagent makes Kubernetes nodes whose pods are processes of this machine.
//
// Each node has the capacity, labels and taints of its NodeSpec, so a laptop can offer GPUs that it does not have. A
// pod that is bound to such a node gets a loopback address of its own. Its init containers run in order, and every
// container becomes a process with the pod's command, environment and volumes. The node and pod controllers are those
// of virtual-kubelet, and this package connects them to package podruntime, which runs the pods.
//
// It also adopts Nodes that others create, such as those of a node autoscaler, and is the machine of each: pods that
// are evicted get SIGTERM and their grace period, and all processes end with the Node object.
//
// It must not be a container runtime: an image is only a directory of programs (Images), CPU and memory limits are not
// enforced, and a process sees all files that the user can see.
package nodeagent
