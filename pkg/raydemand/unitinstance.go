package raydemand

import "slices"

// unitInstances are the resources of Ray's accelerator managers (ray python/ray/_private/accelerators), in byte order.
// Ray's predefined_unit_instance_resources and custom_unit_instance_resources name the same ones
// (src/ray/common/ray_config_def.h).
var unitInstances = []string{GPU, "HPU", "NPU", "RBLN", "TPU", "neuron_cores"}

// UnitInstances returns the resources that Ray assigns by the card: a fraction is a part of one card, and whole units
// are cards that are not in use (docs/reference/facts.md#parts-of-cards). All of them are accelerators.
func UnitInstances() []string { return slices.Clone(unitInstances) }

// IsUnitInstance reports whether Ray assigns a resource by the card.
func IsUnitInstance(name string) bool { return slices.Contains(unitInstances, name) }
