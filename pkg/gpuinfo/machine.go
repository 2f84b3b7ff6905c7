package gpuinfo

import (
	"strings"
	"sync"
)

// MachineOf returns how many physical cards an instance type has, as the node label node.kubernetes.io/instance-type
// names it: 0 if it has a part of one card, which its driver shows as a card. It returns false if the table does not
// have the type.
func MachineOf(instanceType string) (cards int64, known bool) {
	name := strings.ToLower(instanceType)
	for _, family := range partFamilies {
		if strings.HasPrefix(name, family.prefix) {
			return 0, true
		}
	}
	cards, known = machines()[name]
	return cards, known
}

const (
	aws    = "Cluster Autoscaler, ec2_instance_types.go; AWS, accelerated computing instances"
	azure  = "Cluster Autoscaler, azure_instance_types.go"
	nvads  = "Azure, NVadsA10 v5-series: GPU partition"
	nvas   = "Azure, NVv4-series: GPU partition"
	v710   = "Azure, NVadsV710 v5-series: 1/6, 1/3 and 1/2 of a card"
	v620   = "Azure, NGadsV620 v1-series: 1/4 and 1/2 of a card"
	gcp    = "Compute Engine, accelerator-optimized machine family"
	gcpGPU = "Compute Engine, G4 machine types: 1/8, 1/4 and 1/2 of an RTX PRO 6000"
	ecs    = "Alibaba Cloud ECS, instance families gn5 to gn7"
	oci    = "Oracle Cloud, compute shapes: the last number counts the GPUs"
)

// partFamilies are families of which every type has a part of a card.
var partFamilies = []struct{ prefix, source string }{
	{"g6f.", "AWS, accelerated computing instances: fractional GPUs"},
	{"gr6f.", "AWS, accelerated computing instances: fractional GPUs"},
	{"ecs.vgn", "Alibaba Cloud ECS, instance families vgn: shares of a card"},
	{"ecs.sgn", "Alibaba Cloud ECS, instance families sgn: shares of a card"},
}

// machineTable lists instance types by their number of cards (docs/reference/facts.md#cards-of-an-instance-type).
var machineTable = []struct {
	cards         int64
	source, types string
}{
	{1, aws, `g3s.xlarge g3.4xlarge g4ad.xlarge g4ad.2xlarge g4ad.4xlarge g4dn.xlarge g4dn.2xlarge g4dn.4xlarge
		g4dn.8xlarge g4dn.16xlarge g5.xlarge g5.2xlarge g5.4xlarge g5.8xlarge g5.16xlarge g5g.xlarge g5g.2xlarge
		g5g.4xlarge g5g.8xlarge g6.xlarge g6.2xlarge g6.4xlarge g6.8xlarge g6.16xlarge g6e.xlarge g6e.2xlarge
		g6e.4xlarge g6e.8xlarge g6e.16xlarge g7e.2xlarge g7e.4xlarge g7e.8xlarge gr6.4xlarge gr6.8xlarge p2.xlarge
		p3.2xlarge p5.4xlarge`},
	{2, aws, `g3.8xlarge g4ad.8xlarge g5g.16xlarge g5g.metal g7e.12xlarge`},
	{4, aws, `g3.16xlarge g4ad.16xlarge g4dn.12xlarge g5.12xlarge g5.24xlarge g6.12xlarge g6.24xlarge g6e.12xlarge
		g6e.24xlarge g7e.24xlarge p3.8xlarge p6e-gb200.36xlarge`},
	{8, aws, `dl1.24xlarge g4dn.metal g5.48xlarge g6.48xlarge g6e.48xlarge g7e.48xlarge p2.8xlarge p3.16xlarge
		p3dn.24xlarge p4d.24xlarge p4de.24xlarge p5.48xlarge p5e.48xlarge p5en.48xlarge p6-b200.48xlarge
		p6-b300.48xlarge`},
	{16, aws, `p2.16xlarge`},

	{1, azure, `Standard_NC4as_T4_v3 Standard_NC8as_T4_v3 Standard_NC16as_T4_v3 Standard_NC6s_v3
		Standard_NC24ads_A100_v4 Standard_NC40ads_H100_v5 Standard_NCC40ads_H100_v5 Standard_NV6s_v2 Standard_NV12s_v3
		Standard_NV32as_v4 Standard_NV36ads_A10_v5 Standard_NV36adms_A10_v5`},
	{2, azure, `Standard_NC12s_v3 Standard_NC48ads_A100_v4 Standard_NC80adis_H100_v5 Standard_NV12s_v2 Standard_NV24s_v3
		Standard_NV72ads_A10_v5`},
	{4, azure, `Standard_NC64as_T4_v3 Standard_NC24s_v3 Standard_NC24rs_v3 Standard_NC96ads_A100_v4 Standard_NV24s_v2
		Standard_NV48s_v3`},
	{8, azure, `Standard_ND40rs_v2 Standard_ND96asr_v4 Standard_ND96amsr_A100_v4 Standard_ND96isr_H100_v5
		Standard_ND96isr_H200_v5 Standard_ND96isr_MI300X_v5`},
	{0, nvads, `Standard_NV6ads_A10_v5 Standard_NV12ads_A10_v5 Standard_NV18ads_A10_v5`},
	{0, nvas, `Standard_NV4as_v4 Standard_NV8as_v4 Standard_NV16as_v4`},
	{0, v710, `Standard_NV4ads_V710_v5 Standard_NV8ads_V710_v5 Standard_NV12ads_V710_v5`},
	{1, v710, `Standard_NV24ads_V710_v5 Standard_NV28adms_V710_v5`},
	{0, v620, `Standard_NG8ads_V620_v1 Standard_NG16ads_V620_v1`},
	{1, v620, `Standard_NG32ads_V620_v1 Standard_NG32adms_V620_v1`},

	{1, gcp, `a2-highgpu-1g a2-ultragpu-1g a3-highgpu-1g g2-standard-4 g2-standard-8 g2-standard-12 g2-standard-16
		g2-standard-32 g4-standard-48`},
	{2, gcp, `a2-highgpu-2g a2-ultragpu-2g a3-highgpu-2g g2-standard-24 g4-standard-96`},
	{4, gcp, `a2-highgpu-4g a2-ultragpu-4g a3-highgpu-4g a4x-highgpu-4g g2-standard-48 g4-standard-192`},
	{8, gcp, `a2-highgpu-8g a2-ultragpu-8g a3-highgpu-8g a3-edgegpu-8g a3-megagpu-8g a3-ultragpu-8g a4-highgpu-8g
		g2-standard-96 g4-standard-384`},
	{16, gcp, `a2-megagpu-16g`},
	{0, gcpGPU, `g4-standard-6 g4-standard-12 g4-standard-24`},

	{1, ecs, `ecs.gn5-c4g1.xlarge ecs.gn5-c8g1.2xlarge ecs.gn5-c28g1.7xlarge ecs.gn6i-c4g1.xlarge ecs.gn6i-c8g1.2xlarge
		ecs.gn6i-c16g1.4xlarge ecs.gn6i-c24g1.6xlarge ecs.gn6i-c40g1.10xlarge ecs.gn6e-c12g1.3xlarge
		ecs.gn6v-c8g1.2xlarge ecs.gn7-c12g1.3xlarge ecs.gn7e-c16g1.4xlarge ecs.gn7i-c8g1.2xlarge ecs.gn7i-c16g1.4xlarge
		ecs.gn7i-c32g1.8xlarge ecs.gn7i-c48g1.12xlarge ecs.gn7i-c56g1.14xlarge`},
	{2, ecs, `ecs.gn5-c4g1.2xlarge ecs.gn5-c8g1.4xlarge ecs.gn5-c28g1.14xlarge ecs.gn6i-c24g1.12xlarge
		ecs.gn6v-c8g1.4xlarge ecs.gn6e-c12g1.6xlarge ecs.gn7i-c32g1.16xlarge ecs.gn7i-2x.8xlarge`},
	{4, ecs, `ecs.gn5-c8g1.8xlarge ecs.gn6i-c24g1.24xlarge ecs.gn6e-c12g1.12xlarge ecs.gn6v-c8g1.8xlarge
		ecs.gn7-c13g1.13xlarge ecs.gn7e-c16g1.16xlarge ecs.gn7i-c32g1.32xlarge ecs.gn7i-4x.8xlarge
		ecs.gn7i-4x.16xlarge`},
	{8, ecs, `ecs.gn5-c8g1.14xlarge ecs.gn6e-c12g1.24xlarge ecs.gn6v-c8g1.16xlarge ecs.gn6v-c10g1.20xlarge
		ecs.gn7-c13g1.26xlarge ecs.gn7e-c16g1.32xlarge ecs.ebmgn7e.32xlarge ecs.gn7i-8x.16xlarge ecs.gn7i-8x.32xlarge`},

	{1, oci, `VM.GPU2.1 VM.GPU3.1 VM.GPU.A10.1`},
	{2, oci, `BM.GPU2.2 VM.GPU3.2 VM.GPU.A10.2`},
	{4, oci, `VM.GPU3.4 BM.GPU.A10.4 BM.GPU.L40S.4`},
	{8, oci, `BM.GPU3.8 BM.GPU4.8 BM.GPU.A100-v2.8 BM.GPU.B4.8 BM.GPU.H100.8 BM.GPU.H200.8 BM.GPU.B200.8
		BM.GPU.MI300X.8`},
}

// machines maps instance types in lower case to their numbers of cards.
var machines = sync.OnceValue(func() map[string]int64 {
	found := map[string]int64{}
	for _, row := range machineTable {
		for name := range strings.FieldsSeq(row.types) {
			found[strings.ToLower(name)] = row.cards
		}
	}
	return found
})

// mostAttached is how many cards of a GKE accelerator fit on one N1 machine, which any number up to that can be
// attached to (Compute Engine, "N1 machine types with GPUs").
var mostAttached = map[string]int64{
	"nvidia-tesla-t4": 4, "nvidia-tesla-p4": 4, "nvidia-tesla-p100": 4, "nvidia-tesla-v100": 8, "nvidia-tesla-k80": 8,
}

// MostAttached returns the highest number of cards of a GKE accelerator on one machine. It returns false for
// accelerators whose machine types have a fixed number, which MachineOf returns.
func MostAttached(accelerator string) (cards int64, known bool) {
	cards, known = mostAttached[accelerator]
	return cards, known
}
