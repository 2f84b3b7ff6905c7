package main

import (
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// machine is a cloud's machine type with its on-demand list price.
type machine struct {
	name string
	cpu  int64 // vCPU
	gib  int64 // memory
	gpu  int64
	kind string // of the GPU, as Ray names it
	// dollars an hour, Linux, on demand.
	dollars float64
}

// Amazon EC2, us-east-1 (aws.amazon.com/ec2/pricing/on-demand; p4d and p5 after the cut of June 2025).
var (
	m5 = []machine{
		{"m5.xlarge", 4, 16, 0, "", 0.192},
		{"m5.2xlarge", 8, 32, 0, "", 0.384},
		{"m5.4xlarge", 16, 64, 0, "", 0.768},
		{
			"m5.8xlarge",
			32,
			128,
			0,
			"",
			1.536,
		},
		{"m5.12xlarge", 48, 192, 0, "", 2.304},
		{"m5.24xlarge", 96, 384, 0, "", 4.608},
	}
	c5 = []machine{
		{"c5.xlarge", 4, 8, 0, "", 0.17},
		{"c5.2xlarge", 8, 16, 0, "", 0.34},
		{"c5.4xlarge", 16, 32, 0, "", 0.68},
		{
			"c5.9xlarge",
			36,
			72,
			0,
			"",
			1.53,
		},
		{"c5.12xlarge", 48, 96, 0, "", 2.04},
		{"c5.18xlarge", 72, 144, 0, "", 3.06},
	}
	r5 = []machine{
		{"r5.xlarge", 4, 32, 0, "", 0.252}, {"r5.2xlarge", 8, 64, 0, "", 0.504}, {"r5.4xlarge", 16, 128, 0, "", 1.008},
		{"r5.8xlarge", 32, 256, 0, "", 2.016}, {"r5.16xlarge", 64, 512, 0, "", 4.032},
	}
	g4dn = []machine{
		{
			"g4dn.xlarge",
			4,
			16,
			1,
			"T4",
			0.526,
		},
		{"g4dn.2xlarge", 8, 32, 1, "T4", 0.752},
		{"g4dn.4xlarge", 16, 64, 1, "T4", 1.204},
		{"g4dn.12xlarge", 48, 192, 4, "T4", 3.912},
		{"g4dn.metal", 96, 384, 8, "T4", 7.824},
	}
	g5 = []machine{
		{
			"g5.xlarge",
			4,
			16,
			1,
			"A10G",
			1.006,
		},
		{"g5.2xlarge", 8, 32, 1, "A10G", 1.212},
		{"g5.4xlarge", 16, 64, 1, "A10G", 1.624},
		{"g5.8xlarge", 32, 128, 1, "A10G", 2.448},
		{"g5.12xlarge", 48, 192, 4, "A10G", 5.672},
		{"g5.24xlarge", 96, 384, 4, "A10G", 8.144},
		{"g5.48xlarge", 192, 768, 8, "A10G", 16.288},
	}
	p3 = []machine{
		{
			"p3.2xlarge",
			8,
			61,
			1,
			"V100",
			3.06,
		},
		{"p3.8xlarge", 32, 244, 4, "V100", 12.24},
		{"p3.16xlarge", 64, 488, 8, "V100", 24.48},
	}
	p4d = []machine{{"p4d.24xlarge", 96, 1152, 8, "A100", 21.957642}}
	p5  = []machine{{"p5.4xlarge", 16, 256, 1, "H100", 6.88}, {"p5.48xlarge", 192, 2048, 8, "H100", 55.04}}
)

// Google Compute Engine, us-central1 (cloud.google.com/compute/vm-instance-pricing).
var (
	n2 = []machine{
		{"n2-standard-4", 4, 16, 0, "", 0.194236}, {"n2-standard-8", 8, 32, 0, "", 0.388472},
		{"n2-standard-16", 16, 64, 0, "", 0.776944}, {"n2-standard-32", 32, 128, 0, "", 1.553888},
		{"n2-standard-64", 64, 256, 0, "", 3.107776}, {"n2-standard-96", 96, 384, 0, "", 4.661664},
	}
	n2HighMemory = []machine{
		{"n2-highmem-4", 4, 32, 0, "", 0.262028}, {"n2-highmem-8", 8, 64, 0, "", 0.524056},
		{"n2-highmem-32", 32, 256, 0, "", 2.096224}, {"n2-highmem-64", 64, 512, 0, "", 4.192448},
	}
	g2 = []machine{
		{"g2-standard-4", 4, 16, 1, "L4", 0.70683228}, {"g2-standard-8", 8, 32, 1, "L4", 0.85362431},
		{"g2-standard-16", 16, 64, 1, "L4", 1.14721}, {"g2-standard-24", 24, 96, 2, "L4", 2.00085},
		{"g2-standard-48", 48, 192, 4, "L4", 4.00170}, {"g2-standard-96", 96, 384, 8, "L4", 8.00340},
	}
	a2 = []machine{
		{"a2-highgpu-1g", 12, 85, 1, "A100", 3.673385}, {"a2-highgpu-2g", 24, 170, 2, "A100", 7.34677},
		{"a2-highgpu-4g", 48, 340, 4, "A100", 14.69354}, {"a2-highgpu-8g", 96, 680, 8, "A100", 29.38708},
		{"a2-megagpu-16g", 96, 1360, 16, "A100", 55.739504},
	}
)

// Azure, East US (azure.microsoft.com/pricing/details/virtual-machines/linux).
var (
	dsv5 = []machine{
		{"Standard_D4s_v5", 4, 16, 0, "", 0.192}, {"Standard_D8s_v5", 8, 32, 0, "", 0.384},
		{"Standard_D16s_v5", 16, 64, 0, "", 0.768}, {"Standard_D32s_v5", 32, 128, 0, "", 1.536},
		{"Standard_D64s_v5", 64, 256, 0, "", 3.072},
	}
	esv5 = []machine{
		{"Standard_E4s_v5", 4, 32, 0, "", 0.252}, {"Standard_E8s_v5", 8, 64, 0, "", 0.504},
		{"Standard_E16s_v5", 16, 128, 0, "", 1.008}, {"Standard_E32s_v5", 32, 256, 0, "", 2.016},
		{"Standard_E64s_v5", 64, 512, 0, "", 4.032},
	}
	ncT4 = []machine{
		{"Standard_NC4as_T4_v3", 4, 28, 1, "T4", 0.526}, {"Standard_NC8as_T4_v3", 8, 56, 1, "T4", 0.752},
		{"Standard_NC16as_T4_v3", 16, 110, 1, "T4", 1.204}, {"Standard_NC64as_T4_v3", 64, 440, 4, "T4", 4.352},
	}
	ncA100 = []machine{
		{
			"Standard_NC24ads_A100_v4",
			24,
			220,
			1,
			"A100",
			3.673,
		},
		{"Standard_NC48ads_A100_v4", 48, 440, 2, "A100", 7.346},
		{"Standard_NC96ads_A100_v4", 96, 880, 4, "A100", 14.692},
	}
	nd = []machine{
		{"Standard_ND96asr_v4", 96, 900, 8, "A100", 27.197},
		{"Standard_ND96isr_H100_v5", 96, 1900, 8, "H100", 98.32},
	}
)

// cloud is what one provider offers: machines without GPUs, and families with them, each family with about one price
// per GPU.
type cloud struct {
	plain, accelerated [][]machine
}

// clouds are the providers that instances are drawn from.
var clouds = []cloud{
	{plain: [][]machine{m5, c5, r5}, accelerated: [][]machine{g4dn, g5, p3, p4d, p5}},
	{plain: [][]machine{n2, n2HighMemory}, accelerated: [][]machine{g2, a2}},
	{plain: [][]machine{dsv5, esv5}, accelerated: [][]machine{ncT4, ncA100, nd}},
}

// acceleratorLabel is the label with the kind of a node's GPU, which Ray sets by itself.
const acceleratorLabel = "ray.io/accelerator-type"

// group is a worker group with one pod per machine. A tenth of the memory belongs to the node, as on managed
// Kubernetes.
func (m machine) group() planner.Group {
	price := m.dollars
	g := planner.Group{
		Name: m.name, Max: 10_000, NumOfHosts: 1, Price: &price,
		Resources: raydemand.Bundle{"CPU": raydemand.Whole(m.cpu), "memory": raydemand.Whole(m.gib * 9 / 10 * gib)},
	}
	if m.gpu > 0 {
		g.Resources["GPU"] = raydemand.Whole(m.gpu)
		g.Labels = map[string]string{acceleratorLabel: m.kind}
	}
	return g
}

// gib is a GiB in bytes, the unit of Ray's resource "memory".
const gib = 1 << 30
