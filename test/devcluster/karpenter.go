package devcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// InstanceType is an offer of Karpenter's provider, on demand and in one zone. Its nodes have these resources as
// allocatable, less 100m of CPU and 10Mi of memory.
type InstanceType struct {
	Name string
	// Resources are quantities by resource name. The default of pods is 110.
	Resources map[string]string
	// Price is the price of a node per hour. Karpenter chooses the cheapest type that fits.
	Price float64
}

// zone is the zone of all machines of the provider.
const zone = "zone-a"

// startKarpenter installs Karpenter's resource definitions, starts it and waits until it is ready. Its indexes fail
// silently while a definition is not served.
func (c *Cluster) startKarpenter(ctx context.Context) error {
	if !c.options.Kwok {
		return errors.New("starting Karpenter: kwok simulates its nodes, so set Options.Kwok too")
	}
	for _, dir := range []string{"pkg/apis/crds", "kwok/apis/crds"} {
		if err := installCRDs(ctx, c.dynamic, c.kit.File(Karpenter, dir), unchanged); err != nil {
			return fmt.Errorf("starting Karpenter: %w", err)
		}
	}
	text, err := instanceTypesFile(c.options.InstanceTypes)
	if err != nil {
		return fmt.Errorf("starting Karpenter: %w", err)
	}
	if err := os.WriteFile(c.plane.instanceTypes(), text, 0o644); err != nil {
		return fmt.Errorf("starting Karpenter: %w", err)
	}
	return c.startPart(ctx, Karpenter)
}

// OutOfStock sets which instance types are out of stock, and returns all others to stock. A type that Karpenter failed
// to launch stays unavailable for three minutes, as with real providers.
func (c *Cluster) OutOfStock(types ...string) error {
	file := c.plane.outOfStock()
	if err := os.WriteFile(file+".new", []byte(strings.Join(types, "\n")), 0o644); err != nil {
		return fmt.Errorf("changing the stock of instance types: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("changing the stock of instance types: %w", err)
	}
	return nil
}

func (cp *controlPlane) instanceTypes() string { return filepath.Join(cp.dir, "instance-types.json") }

func (cp *controlPlane) outOfStock() string { return filepath.Join(cp.dir, "out-of-stock") }

// karpenterEnv is the configuration of Karpenter, which has no flags for most of it.
func (cp *controlPlane) karpenterEnv() []string {
	return []string{
		"KUBECONFIG=" + cp.kubeconfigOf(Karpenter), "DISABLE_LEADER_ELECTION=true", "LOG_LEVEL=debug",
		"METRICS_PORT=" + strconv.Itoa(cp.ports["karpenter-metrics"]),
		"HEALTH_PROBE_PORT=" + strconv.Itoa(cp.ports["karpenter-health"]),
		"FEATURE_GATES=SpotToSpotConsolidation=true,StaticCapacity=true,CapacityBuffer=true",
		"INSTANCE_TYPES_FILE_PATH=" + cp.instanceTypes(), "OUT_OF_STOCK_FILE_PATH=" + cp.outOfStock(),
	}
}

// instanceTypesFile returns the list in the provider's format (kwok/cloudprovider/helpers.go of Karpenter).
func instanceTypesFile(types []InstanceType) ([]byte, error) {
	type requirement struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	}
	type offering struct {
		Price        float64
		Available    bool
		Requirements []requirement
	}
	type instanceType struct {
		Name             string            `json:"name"`
		Architecture     string            `json:"architecture"`
		OperatingSystems []string          `json:"operatingSystems"`
		Resources        map[string]string `json:"resources"`
		Offerings        []offering        `json:"offerings"`
	}
	list := make([]instanceType, 0, len(types))
	for _, t := range types {
		resources := map[string]string{"pods": "110"}
		for name, quantity := range t.Resources {
			resources[name] = quantity
		}
		list = append(list, instanceType{
			Name: t.Name, Architecture: "amd64", OperatingSystems: []string{"linux"}, Resources: resources,
			Offerings: []offering{{Price: t.Price, Available: true, Requirements: []requirement{
				{Key: "karpenter.sh/capacity-type", Operator: "In", Values: []string{"on-demand"}},
				{Key: "topology.kubernetes.io/zone", Operator: "In", Values: []string{zone}},
			}}},
		})
	}
	return json.MarshalIndent(list, "", "  ")
}
