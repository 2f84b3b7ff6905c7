package raydemand

import "slices"

// unitInstances are what Ray's accelerator managers announce (ray python/ray/_private/accelerators), in byte order. Ray's
// predefined_unit_instance_resources and custom_unit_instance_resources name the same (src/ray/common/ray_config_def.h).
var unitInstances = []string{GPU, "HPU", "NPU", "RBLN", "TPU", "neuron_cores"}

// UnitInstances lists the resources that Ray gives out by the card: a part of one lies on one card, and whole ones are cards of
// which nothing is in use (docs/reference/facts.md#parts-of-cards). All are accelerators.
func UnitInstances() []string { return slices.Clone(unitInstances) }

// IsUnitInstance reports whether Ray gives a resource out by the card.
func IsUnitInstance(name string) bool { return slices.Contains(unitInstances, name) }
