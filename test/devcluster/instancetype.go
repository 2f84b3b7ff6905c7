package devcluster

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// InstanceType is a kind of machine of Karpenter's provider. Its nodes have these resources as allocatable, less 100m
// of CPU and 10Mi of memory.
type InstanceType struct {
	Name string
	// Resources are quantities by resource name, such as nvidia.com/gpu or nvidia.com/mig-1g.10gb. The default of pods
	// is 110.
	Resources map[string]string
	// Price is the price of a node per hour, on demand and in zone-a, if there are no Offers. Karpenter chooses the
	// cheapest offer that fits.
	Price float64
	// Offers are the ways to get a machine of this type.
	Offers []Offer
}

// Offer is a price for an instance type.
type Offer struct {
	// CapacityType is spot or on-demand, the default.
	CapacityType string
	// Zone is the default zone-a if it is empty.
	Zone string
	// Price is the price of a node per hour.
	Price float64
}

// offers returns the offers with their defaults.
func (t InstanceType) offers() []Offer {
	if len(t.Offers) == 0 {
		return []Offer{{CapacityType: "on-demand", Zone: "zone-a", Price: t.Price}}
	}
	offers := slices.Clone(t.Offers)
	for i := range offers {
		offers[i].CapacityType = cmp.Or(offers[i].CapacityType, "on-demand")
		offers[i].Zone = cmp.Or(offers[i].Zone, "zone-a")
	}
	return offers
}

// The provider's format of its file (kwok/cloudprovider/helpers.go of Karpenter).
type (
	providerType struct {
		Name             string             `json:"name"`
		Architecture     string             `json:"architecture"`
		OperatingSystems []string           `json:"operatingSystems"`
		Resources        map[string]string  `json:"resources"`
		Offerings        []providerOffering `json:"offerings"`
	}
	providerOffering struct {
		Price        float64
		Available    bool
		Requirements []requirement
	}
	requirement struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	}
)

// instanceTypesFile returns the content of the provider's file.
func instanceTypesFile(types []InstanceType) ([]byte, error) {
	list := make([]providerType, 0, len(types))
	for _, t := range types {
		resources := map[string]string{"pods": "110"}
		maps.Copy(resources, t.Resources)
		made := providerType{
			Name: t.Name, Architecture: "amd64", OperatingSystems: []string{"linux"}, Resources: resources,
		}
		for _, o := range t.offers() {
			made.Offerings = append(made.Offerings, providerOffering{Price: o.Price, Available: true,
				Requirements: []requirement{in(capacityTypeLabel, o.CapacityType), in(zoneLabel, o.Zone)}})
		}
		list = append(list, made)
	}
	return json.MarshalIndent(list, "", "  ")
}

// The labels of nodes by which NodePools choose machines.
const (
	capacityTypeLabel = "karpenter.sh/capacity-type"
	zoneLabel         = "topology.kubernetes.io/zone"
	instanceTypeLabel = "node.kubernetes.io/instance-type"
)

// in returns the requirement that a label has one of these values.
func in(key string, values ...string) requirement {
	return requirement{Key: key, Operator: "In", Values: values}
}
