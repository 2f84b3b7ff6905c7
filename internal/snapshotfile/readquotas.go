package snapshotfile

import (
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// quotas reads what the pods of groups may have together.
func (in input) quotas() []landing.Quota {
	var quotas []landing.Quota
	for _, each := range in.objects() {
		field, done := each.fields()
		quotas = append(quotas, landing.Quota{
			Name:     field("name").NonEmpty("what grants the quota"),
			Resource: field("resource").NonEmpty("the name of a resource"),
			Amount:   field("amount").amount(raydemand.MaxAmount),
			PodTakes: field("podTakes").capacity(),
			Why:      field("why").Text(),
		})
		done()
	}
	return quotas
}
