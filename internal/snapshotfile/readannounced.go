package snapshotfile

import (
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// announced reads what is known about the labels and the accelerator type of a group's new pods.
func (in input) announced() []landing.Announced {
	var all []landing.Announced
	seen := map[string]int{}
	for i, each := range in.objects() {
		field, done := each.fields()
		a := landing.Announced{
			Name:    field("name").NonEmpty("a label's key, or accelerator_type: with its colon"),
			Values:  field("values").texts(),
			Present: field("present").Flag(),
			Certain: field("certain").Flag(),
			Shown:   field("shown").texts(),
			Why:     field("why").Text(),
		}
		field("name").unique(seen, a.Name, i)
		if a.Certain && len(a.Values) != 1 {
			field("values").Fail("one value, because certain is true")
		}
		done()
		all = append(all, a)
	}
	return all
}

// topologyLabels reads which labels of Kubernetes nodes Ray nodes have as well, by the node's label.
func (in input) topologyLabels() []sharing.TopologyLabel {
	all, ok := in.named(`an object of labels such as {"nvidia.com/gpu.clique": "ray.io/gpu-domain"}`)
	if !ok {
		return nil
	}
	var rows []sharing.TopologyLabel
	for _, each := range all {
		rows = append(rows, sharing.TopologyLabel{Node: each.Name(), Ray: each.NonEmpty("the label of Ray nodes")})
	}
	return rows
}
