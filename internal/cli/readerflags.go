package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// NodeReaderFlags are the flags of each command that reads nodes.
type NodeReaderFlags struct {
	poolLabel                 string
	resources, topologyLabels []string
}

// AddTo adds the flags to a command that reads nodes for RayClusters.
func (f *NodeReaderFlags) AddTo(flags *pflag.FlagSet) {
	f.AddOfNodes(flags)
	flags.StringArrayVar(
		&f.topologyLabels,
		"topology-label",
		nil,
		"NODE=RAY: each Ray node has the label RAY with the value of the label NODE of its Kubernetes node, such as "+
			"nvidia.com/gpu.clique=ray.io/gpu-domain",
	)
}

// AddOfNodes adds the flags that say what Kubernetes nodes have, and none about Ray nodes.
func (f *NodeReaderFlags) AddOfNodes(flags *pflag.FlagSet) {
	Text(flags, &f.poolLabel, "pool-label",
		"a node label that names the pool, and takes precedence over those of the clouds",
		"a string, a label's name such as example.com/pool",
		func(name string) bool { return name == "" || len(validation.IsQualifiedName(name)) == 0 })
	flags.StringArrayVar(
		&f.resources,
		"resource",
		nil,
		"NAME=KIND: the kind of a resource that is not built in, or another kind for one that is; KIND is "+
			strings.Join(ConfigurableKinds(), ", ")+"; mig can have a profile, mig:1g.5gb, and gpu-mem needs the "+
			"MiB of a unit, gpu-mem:1024; none is no GPU, and elsewhere is no GPU either and not bounded by nodes, "+
			"because an extender of the scheduler counts it",
	)
}

// ErrServerReadsNodes is the error of NodeReaderFlags with a RayCluster, whose nodes the server reads.
var ErrServerReadsNodes = errors.New(
	"--resource, --pool-label and --topology-label are for files: the server reads the RayCluster's nodes with " +
		"its own settings",
)

// Given reports whether any flag is set.
func (f *NodeReaderFlags) Given() bool {
	return f.poolLabel != "" || len(f.resources)+len(f.topologyLabels) > 0
}

// Reader returns the node reader that the flags configure.
func (f *NodeReaderFlags) Reader() (reader sharing.Reader, err error) {
	reader.PoolLabel = f.poolLabel
	if reader.Names.Configured, err = configuredResources(f.resources); err != nil {
		return reader, BadInput(err)
	}
	if reader.TopologyLabels, err = topologyLabels(f.topologyLabels); err != nil {
		return reader, BadInput(err)
	}
	return reader, nil
}

// topologyLabels parses the values of --topology-label.
func topologyLabels(pairs []string) (labels []sharing.TopologyLabel, err error) {
	for _, pair := range pairs {
		node, ray, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("--topology-label %q: has no =: want NODE=RAY such as "+
				"nvidia.com/gpu.clique=ray.io/gpu-domain", pair)
		}
		label := sharing.TopologyLabel{Node: node, Ray: ray}
		if err := decode.CheckTopologyLabel(label); err != nil {
			return nil, fmt.Errorf("--topology-label %q: %w: want NODE=RAY such as "+
				"nvidia.com/gpu.clique=ray.io/gpu-domain", pair, err)
		}
		labels = append(labels, label)
	}
	return labels, nil
}

// configuredResources parses the values of --resource.
func configuredResources(pairs []string) (resources []gpuinfo.Resource, err error) {
	for _, pair := range pairs {
		resource, err := configuredResource(pair)
		if slices.ContainsFunc(resources, func(r gpuinfo.Resource) bool { return r.Name == resource.Name }) {
			err = fmt.Errorf("%s is repeated: want each name once", resource.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("--resource %q: %w", pair, err)
		}
		resources = append(resources, resource)
	}
	return resources, nil
}

// ConfigurableKinds returns the kinds that --resource accepts.
func ConfigurableKinds() []string {
	kinds := []gpuinfo.Kind{gpuinfo.Whole, gpuinfo.MIG, gpuinfo.TimeSliced, gpuinfo.MPS, gpuinfo.GPUMemory,
		gpuinfo.VGPU, gpuinfo.NoGPU, gpuinfo.Elsewhere}
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind)
	}
	return names
}

// configuredResource parses NAME=KIND, NAME=mig:PROFILE and NAME=gpu-mem:MIB.
func configuredResource(pair string) (resource gpuinfo.Resource, err error) {
	name, kind, _ := strings.Cut(pair, "=")
	kind, more, followed := strings.Cut(kind, ":")
	resource = gpuinfo.Resource{Name: name, Kind: gpuinfo.Kind(kind), Role: gpuinfo.Devices, Source: "--resource"}
	domain, rest, _ := strings.Cut(name, "/")
	switch {
	case domain == "" || rest == "" || !slices.Contains(ConfigurableKinds(), kind):
		kinds := strings.Replace(strings.Join(ConfigurableKinds(), ", "), "gpu-mem", "gpu-mem:MIB", 1)
		return resource, fmt.Errorf("want a name such as example.com/gpu, =, and one of %s", kinds)
	case resource.Kind == gpuinfo.GPUMemory:
		// The unit is required: resource names in use count GiB, MiB or pages of 128 MiB.
		mib, err := strconv.ParseUint(more, 10, 32)
		if err != nil || mib == 0 {
			return resource, fmt.Errorf("the MiB of a unit is %q: want %s=gpu-mem:1024 for units of 1 GiB", more, name)
		}
		resource.Role, resource.Unit = gpuinfo.Memory, gpuinfo.MiB(mib)
	case followed && resource.Kind == gpuinfo.MIG:
		profile, err := gpuinfo.ParseProfile(more)
		if err != nil {
			return resource, err
		}
		resource.Profile = profile.String()
	case followed:
		return resource, fmt.Errorf("%q follows %s: want it after mig or gpu-mem only", more, kind)
	}
	return resource, nil
}
