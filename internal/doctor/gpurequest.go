package doctor

import (
	"errors"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// gpuRequest is one GPU resource of one container, with its limit and its request, one of which may be absent.
type gpuRequest struct {
	rayGroup
	Container      fieldpath.Value
	Resource       string
	Limit, Request fieldpath.Value
}

// gpuRequests returns the GPU resources that the group's containers name in limits or requests. A name that no table
// has counts, too.
func (g rayGroup) gpuRequests() []gpuRequest {
	var all []gpuRequest
	for _, c := range g.containers() {
		limits, requests := c.Get("resources", "limits"), c.Get("resources", "requests")
		names := limits.Keys()
		for _, name := range requests.Keys() {
			if !limits.Has(name) {
				names = append(names, name)
			}
		}
		for _, name := range names {
			if isGPU(g.resourceNames, name) {
				all = append(all, gpuRequest{g, c, name, limits.Get(name), requests.Get(name)})
			}
		}
	}
	return all
}

// requestsGPU reports whether a container of the group names a GPU resource.
func (g rayGroup) requestsGPU() bool { return len(g.gpuRequests()) > 0 }

// requestsDevices reports whether a container of the group names a GPU, or the Ray container another accelerator.
func (g rayGroup) requestsDevices() bool {
	for name := range g.Pods.GPUs.Limits {
		if _, is := gpuinfo.AcceleratorOf(name); is {
			return true
		}
	}
	return g.requestsGPU()
}

// mayHaveGPUs reports whether anything gives the group's pods GPUs.
func (g rayGroup) mayHaveGPUs() bool {
	return g.Pods.GPUs.Claims || g.Pods.Pod.Share != nil || g.requestsDevices() ||
		strings.Contains(g.template().Text("runtimeClassName"), "nvidia")
}

// field returns the limit, or the request if there is no limit.
func (r gpuRequest) field() fieldpath.Value {
	if r.Limit.Has() {
		return r.Limit
	}
	return r.Request
}

// ofRay reports whether the container runs Ray.
func (r gpuRequest) ofRay() bool { return r.isRayContainer(r.Container) }

// isDevices reports whether units of the resource are devices: cards, MIG instances or shares.
func (r gpuRequest) isDevices() bool {
	resource, err := r.lookup()
	return err == nil && resource.Role == gpuinfo.Devices
}

// lookup returns what the resource is.
func (r gpuRequest) lookup() (gpuinfo.Resource, error) { return r.resourceNames.Resource(r.Resource) }

// isNVIDIA reports whether the resource is one of NVIDIA's.
func (r gpuRequest) isNVIDIA() bool { return strings.HasPrefix(r.Resource, "nvidia.com/") }

// wholeGPUs returns the one resource of the Ray container whose units Ray counts as GPUs, and its limit. It returns no
// name if there are several, or if other resources of the container make shares of them.
func (g rayGroup) wholeGPUs() (name string, limit int64) {
	for resource, amount := range g.Pods.GPUs.Limits {
		if amount <= 0 || !isGPU(g.resourceNames, resource) {
			continue
		}
		whole := resource == gpuinfo.NvidiaGPU || resource == "amd.com/gpu" ||
			strings.HasPrefix(resource, gpuinfo.MIGPrefix)
		if !whole || name != "" || amount%raydemand.One != 0 {
			return "", 0
		}
		name, limit = resource, int64(amount/raydemand.One)
	}
	return name, limit
}

// isGPU reports whether the name is that of a GPU resource, known or not.
func isGPU(names gpuinfo.Names, name string) bool {
	_, err := names.Resource(name)
	return err == nil || errors.Is(err, gpuinfo.ErrUnknownResource)
}
