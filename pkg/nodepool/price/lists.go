package price

import (
	"strings"
	"sync"
)

// List is the on-demand list prices of one cloud in one region, for Linux, as they were on a day.
type List struct {
	Cloud, Region string
	// Currency is a code of ISO 4217. Date is the day on which the source was read from the cloud.
	Currency, Date string
	// Source says where the figures are from.
	Source string
	// Hourly are the prices of one machine per hour, by instance type.
	Hourly map[string]float64
}

// lists hold list prices of machines with NVIDIA GPUs. A machine for which the source has no figure in the region is
// left out, such as p5e.48xlarge, a3-megagpu-8g and a3-ultragpu-8g.
var lists = []List{
	{
		Cloud: "AWS", Region: "us-east-1", Currency: "USD", Date: "2026-07-20",
		Source: "AWS Price List API, as karpenter-provider-aws records it (pkg/providers/pricing/" +
			"zz_generated.pricing_aws.go)",
		Hourly: map[string]float64{
			"p2.xlarge": 0.9, "p2.8xlarge": 7.2, "p2.16xlarge": 14.4,
			"p3.2xlarge": 3.06, "p3.8xlarge": 12.24, "p3.16xlarge": 24.48, "p3dn.24xlarge": 31.212,
			"p4d.24xlarge": 21.957642, "p4de.24xlarge": 27.44705,
			"p5.4xlarge": 6.88, "p5.48xlarge": 55.04, "p5en.48xlarge": 63.296,
			"p6-b200.48xlarge": 113.9328, "p6-b300.48xlarge": 142.416,
			"g4dn.xlarge": 0.526, "g4dn.2xlarge": 0.752, "g4dn.4xlarge": 1.204, "g4dn.8xlarge": 2.176,
			"g4dn.12xlarge": 3.912, "g4dn.16xlarge": 4.352, "g4dn.metal": 7.824,
			"g5.xlarge": 1.006, "g5.2xlarge": 1.212, "g5.4xlarge": 1.624, "g5.8xlarge": 2.448,
			"g5.12xlarge": 5.672, "g5.16xlarge": 4.096, "g5.24xlarge": 8.144, "g5.48xlarge": 16.288,
			"g5g.xlarge": 0.42, "g5g.2xlarge": 0.556, "g5g.4xlarge": 0.828, "g5g.8xlarge": 1.372,
			"g5g.16xlarge": 2.744, "g5g.metal": 2.744,
			"g6.xlarge": 0.8048, "g6.2xlarge": 0.9776, "g6.4xlarge": 1.3232, "g6.8xlarge": 2.0144,
			"g6.12xlarge": 4.6016, "g6.16xlarge": 3.3968, "g6.24xlarge": 6.6752, "g6.48xlarge": 13.3504,
			"gr6.4xlarge": 1.5392, "gr6.8xlarge": 2.4464,
			"g6f.large": 0.202, "g6f.xlarge": 0.2375, "g6f.2xlarge": 0.475, "g6f.4xlarge": 0.95, "gr6f.4xlarge": 1.066,
			"g6e.xlarge": 1.861, "g6e.2xlarge": 2.24208, "g6e.4xlarge": 3.00424, "g6e.8xlarge": 4.52856,
			"g6e.12xlarge": 10.49264, "g6e.16xlarge": 7.57719, "g6e.24xlarge": 15.06559, "g6e.48xlarge": 30.13118,
		},
	},
	{
		Cloud: "Google Cloud", Region: "us-central1", Currency: "USD", Date: "2026-08-03",
		Source: "Cloud Billing API, as karpenter-provider-gcp of CloudPilot AI records it (pkg/providers/pricing/" +
			"initial-prices.json)",
		Hourly: map[string]float64{
			"a2-highgpu-1g": 3.673385, "a2-highgpu-2g": 7.34677, "a2-highgpu-4g": 14.69354, "a2-highgpu-8g": 29.38708,
			"a2-megagpu-16g": 55.739504,
			"a2-ultragpu-1g": 5.068798, "a2-ultragpu-2g": 10.137596, "a2-ultragpu-4g": 20.275192,
			"a2-ultragpu-8g": 40.550383,
			"a3-highgpu-1g":  11.06125, "a3-highgpu-2g": 22.1225, "a3-highgpu-4g": 44.245, "a3-highgpu-8g": 88.49,
			"g2-standard-4": 0.706832, "g2-standard-8": 0.853624, "g2-standard-12": 1.000416,
			"g2-standard-16": 1.147208, "g2-standard-24": 2.000833, "g2-standard-32": 1.734376,
			"g2-standard-48": 4.001665, "g2-standard-96": 8.00333,
			"g4-standard-48": 4.49993, "g4-standard-96": 8.99986, "g4-standard-192": 17.99972,
			"g4-standard-384": 35.99944,
		},
	},
	{
		Cloud: "Azure", Region: "eastus", Currency: "USD", Date: "2026-06-18",
		Source: "Azure Retail Prices API, as karpenter-provider-azure records it (pkg/providers/pricing/" +
			"zz_generated.pricing.go)",
		Hourly: map[string]float64{
			"Standard_NC4as_T4_v3": 0.526, "Standard_NC8as_T4_v3": 0.752, "Standard_NC16as_T4_v3": 1.204,
			"Standard_NC64as_T4_v3": 4.352,
			"Standard_NC6s_v3":      3.06, "Standard_NC12s_v3": 6.12, "Standard_NC24s_v3": 12.24,
			"Standard_NC24rs_v3":       13.46,
			"Standard_NC24ads_A100_v4": 3.673, "Standard_NC48ads_A100_v4": 7.346, "Standard_NC96ads_A100_v4": 14.692,
			"Standard_NC40ads_H100_v5": 6.98, "Standard_NC80adis_H100_v5": 13.96,
			"Standard_ND40rs_v2": 22.032, "Standard_ND96asr_v4": 27.197, "Standard_ND96amsr_A100_v4": 32.77,
			"Standard_ND96isr_H100_v5": 98.32,
			"Standard_NV6ads_A10_v5":   0.454, "Standard_NV12ads_A10_v5": 0.908, "Standard_NV18ads_A10_v5": 1.6,
			"Standard_NV36ads_A10_v5": 3.2, "Standard_NV36adms_A10_v5": 4.52, "Standard_NV72ads_A10_v5": 6.52,
			"Standard_NV12s_v3": 1.14, "Standard_NV24s_v3": 2.28, "Standard_NV48s_v3": 4.56,
		},
	},
	{
		Cloud: "Azure", Region: "eastus2", Currency: "USD", Date: "2026-06-18",
		Source: "Azure Retail Prices API, as karpenter-provider-azure records it (pkg/providers/pricing/" +
			"zz_generated.pricing.go); eastus does not offer them",
		Hourly: map[string]float64{"Standard_ND96isr_H200_v5": 84.8, "Standard_NCC40ads_H100_v5": 8.82},
	},
}

// Lists returns the built-in lists. Callers must not change them.
func Lists() []List { return lists }

// listed maps instance types in lower case to their list prices.
var listed = sync.OnceValue(func() map[string]float64 {
	found := map[string]float64{}
	for _, list := range lists {
		for name, hourly := range list.Hourly {
			found[strings.ToLower(name)] = hourly
		}
	}
	return found
})

// ListPrice returns the list price of an instance type, as the node label node.kubernetes.io/instance-type names it.
func ListPrice(instanceType string) (hourly float64, known bool) {
	hourly, known = listed()[strings.ToLower(instanceType)]
	return hourly, known
}
