package sharing_test

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestAnnotationsOfAPodRuleCardsOut(t *testing.T) {
	uuid := "GPU-a"
	hami := sharing.Card{UUID: &uuid, Model: "NVIDIA A100-SXM4-80GB", Mode: "hami-core", Source: "hami"}
	volcano := hami
	volcano.Source = "volcano"
	const of = "a card of type NVIDIA A100-SXM4-80GB where the pod has the annotation "
	for _, test := range []struct {
		name, key, value string
		card             sharing.Card
		want             string
	}{
		{"another type", "nvidia.com/use-gputype", "H100", hami, of + "nvidia.com/use-gputype: H100"},
		{"one of several types, in any case", "nvidia.com/use-gputype", "H100, a100", hami, ""},
		{"Volcano compares types too", "nvidia.com/use-gputype", "H100", volcano, of + "nvidia.com/use-gputype: H100"},
		{"a type that is excluded", "nvidia.com/nouse-gputype", "V100,A100", hami, of + "nvidia.com/nouse-gputype: V100,A100"},
		{"another type is excluded", "nvidia.com/nouse-gputype", "V100", hami, ""},
		{"nothing but commas", "nvidia.com/use-gputype", " , ", hami, ""},
		{"another mode", "nvidia.com/vgpu-mode", "mig", hami, "a card in mode hami-core where the pod has the annotation nvidia.com/vgpu-mode: mig"},
		{"one of several modes", "nvidia.com/vgpu-mode", "mig,hami-core", hami, ""},
		{"HAMi's mode means nothing to Volcano", "nvidia.com/vgpu-mode", "mig", volcano, ""},
		{"Volcano's own annotation", "volcano.sh/vgpu-mode", "mig", volcano, "a card in mode hami-core where the pod has the annotation volcano.sh/vgpu-mode: mig"},
		{"another card", "nvidia.com/use-gpuuuid", "GPU-b", hami, "a card with UUID GPU-a where the pod has the annotation nvidia.com/use-gpuuuid: GPU-b"},
		{"the card among others", "nvidia.com/use-gpuuuid", "GPU-b, GPU-a", hami, ""},
		{"the card is excluded", "volcano.sh/vgpu-nouse-gpuuuid", "GPU-a", volcano, "a card with UUID GPU-a where the pod has the annotation volcano.sh/vgpu-nouse-gpuuuid: GPU-a"},
		{"what is unknown is no reason", "nvidia.com/use-gputype", "H100", sharing.Card{Source: "hami"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			choice := sharing.CardChoiceOf(map[string]string{test.key: test.value, "other": "x"})
			if got := choice.Refuses(test.card); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if choice := sharing.CardChoiceOf(map[string]string{"other": "x"}); choice != nil {
		t.Errorf("a pod without such annotations wants %v", choice)
	}
}
