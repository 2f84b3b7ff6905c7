package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// startKarpenter installs Karpenter's resource definitions, starts it and waits until it is ready. Its indexes fail
// silently while a definition is not served.
func (c *Cluster) startKarpenter(ctx context.Context) error {
	if !c.options.Kwok && !c.options.AdoptNodes {
		return errors.New("starting Karpenter: its nodes need Options.Kwok or Options.AdoptNodes")
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
