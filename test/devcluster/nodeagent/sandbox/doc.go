// Package sandbox runs a container's command as a process of this machine, isolated by Linux namespaces as far as the
// machine allows.
//
// It must not know pods or any other Kubernetes object. It enforces no limits on CPU or memory, and hides no file from
// a process that the user can see.
//
// # How processes end
//
// Where the machine allows it, every container gets a PID namespace. Its command is process 1 there, and when it ends,
// by itself or by SIGKILL, the kernel kills all its descendants, process groups and daemons included. Where PID
// namespaces are not available, the package kills the descendants of the command and every process whose environment
// has the container's ID (HELIOSTAT_CONTAINER). It never looks for processes by name.
package sandbox
