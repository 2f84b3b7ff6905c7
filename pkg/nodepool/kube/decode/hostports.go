package decode

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// Port that the operator adds to the Ray container unless it has one of this name (docs/reference/facts.md).
const (
	metricsPortName = "metrics"
	metricsPort     = 8080
)

// hostPorts returns the ports of the node that a pod takes. On the node's own network, these are all that its
// containers list, with the one that the operator adds to the Ray container, which is the first.
func hostPorts(spec Fields) (ports []landing.HostPort) {
	onNode := spec.Flag("hostNetwork")
	for i, container := range runningContainers(spec) {
		listed := container.Objects("ports")
		for _, port := range listed {
			number := port.Int64("hostPort")
			if number == 0 && onNode {
				number = port.Int64("containerPort")
			}
			if number > 0 {
				ports = append(ports, landing.HostPort{
					IP: port.Text("hostIP"), Protocol: port.Text("protocol"), Port: number})
			}
		}
		isMetrics := func(port Fields) bool { return port.Text("name") == metricsPortName }
		if i == 0 && onNode && !slices.ContainsFunc(listed, isMetrics) {
			ports = append(ports, landing.HostPort{Port: metricsPort})
		}
	}
	return ports
}

// runningContainers returns the containers of a pod, and after them the init containers that run beside them.
func runningContainers(spec Fields) []Fields {
	containers := spec.Objects("containers")
	for _, container := range spec.Objects("initContainers") {
		if container.Text("restartPolicy") == "Always" {
			containers = append(containers, container)
		}
	}
	return containers
}
