package sharing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// cardText writes what is free on each card: index free-units/free-MiB/free-cores, ? if unknown, ! if the card is
// unhealthy, then its instances.
func cardText(cards []sharing.Card) string {
	number := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}
	var texts []string
	for _, c := range cards {
		index := "-"
		if c.Index != nil {
			index = fmt.Sprint(*c.Index)
		}
		text := index + " " + number(c.FreeUnits) + "/" + number(c.FreeMiB) + "/" + number(c.FreeCores)
		if c.Healthy != nil && !*c.Healthy {
			text += "!"
		}
		for _, i := range c.Instances {
			text += " " + i.Profile
			if i.Start != nil {
				text += fmt.Sprintf("@%d", *i.Start)
			}
			if i.Free != nil && *i.Free {
				text += "+"
			}
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

func pod(requests map[string]int64, annotations ...string) sharing.Pod {
	p := sharing.Pod{Namespace: "ml", Name: "p", Requests: requests, Annotations: map[string]string{}}
	for i := 0; i < len(annotations); i += 2 {
		p.Annotations[annotations[i]] = annotations[i+1]
	}
	return p
}

func TestFreeMemoryOfSharedCardsIsKnownCardByCard(t *testing.T) {
	mem := func(n int) map[string]int64 { return quantities("aliyun.com/gpu-mem", n) }
	const ack = "ack.node.gpu.schedule=cgpu aliyun.accelerator/nvidia_count=4"
	tests := []struct {
		name  string
		pods  []sharing.Pod
		units map[string]int64
		marks string
		want  string
	}{
		{"ACK's record of cards by container", []sharing.Pod{
			pod(mem(15), "scheduler.framework.gpushare.allocation", `{"0":{"0":15}}`),
			pod(mem(9), "scheduler.framework.gpushare.allocation", `{"0":{"1":4},"1":{"1":5}}`),
		}, mem(60), ack, "0 0/0/?, 1 6/6144/?, 2 15/15360/?, 3 15/15360/?"},
		{"the open-source extender's card", []sharing.Pod{pod(mem(9), "ALIYUN_COM_GPU_MEM_IDX", "2", "ALIYUN_COM_GPU_MEM_POD", "9")},
			mem(60), ack, "0 15/15360/?, 1 15/15360/?, 2 6/6144/?, 3 15/15360/?"},
		{"a pod without a record may be on any card", []sharing.Pod{pod(mem(5))}, mem(60), ack, "0 10/10240/?, 1 10/10240/?, 2 10/10240/?, 3 10/10240/?"},
		{"a card index of -1 is no record", []sharing.Pod{pod(mem(5), "ALIYUN_COM_GPU_MEM_IDX", "-1")}, mem(30), "ack.node.gpu.schedule=cgpu aliyun.accelerator/nvidia_count=2", "0 10/10240/?, 1 10/10240/?"},
		{"an amount below 0 is no record", []sharing.Pod{pod(mem(5), "scheduler.framework.gpushare.allocation", `{"0":{"0":-700}}`)}, mem(30),
			"ack.node.gpu.schedule=cgpu aliyun.accelerator/nvidia_count=2", "0 10/10240/?, 1 10/10240/?"},
		{"nor is a card that is not there", []sharing.Pod{
			pod(mem(5), "scheduler.framework.gpushare.allocation", `{"0":{"99":5}}`), pod(mem(3), "ALIYUN_COM_GPU_MEM_IDX", "2", "ALIYUN_COM_GPU_MEM_POD", "1"),
		}, mem(30), "ack.node.gpu.schedule=cgpu aliyun.accelerator/nvidia_count=2", "0 7/7168/?, 1 7/7168/?"},
		{"memory and cores", []sharing.Pod{pod(quantities("aliyun.com/gpu-mem", 4, "aliyun.com/gpu-core.percentage", 20),
			"scheduler.framework.gpushare.allocation", `{"0":{"1":4}}`, "gpushare.alibabacloud.com/core-percentage", `{"0":{"1":20}}`)},
			quantities("aliyun.com/gpu-mem", 30, "aliyun.com/gpu-core.percentage", 200), "ack.node.gpu.schedule=core_mem aliyun.accelerator/nvidia_count=2", "0 15/15360/100, 1 11/11264/80"},
		{"a pod that holds no GPU changes nothing", []sharing.Pod{pod(quantities("cpu.example/x", 1))}, mem(15), "ack.node.gpu.schedule=cgpu aliyun.accelerator/nvidia_count=1", "0 15/15360/?"},
		{"nothing is known while pods are not", nil, mem(60), ack, ""},
		{"nor while the number of cards is not", []sharing.Pod{}, mem(60), "ack.node.gpu.schedule=cgpu", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := sharing.Reader{}.Read(sharing.NodeObject{Labels: labels(test.marks), Allocatable: test.units, Pods: test.pods})
			if diff := cmp.Diff(test.want, cardText(got.PerCard)); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFreeSharesOfVGPUsAreTheRegisterLessWhatPodsWereGiven(t *testing.T) {
	const (
		hami    = "hami.io/node-nvidia-register"
		given   = "hami.io/vgpu-devices-allocated"
		lines   = "GPU-a,10,24576,100,NVIDIA-NVIDIA A10,0,true,0,hami-core:GPU-b,10,24576,100,NVIDIA-NVIDIA A10,0,true,1,hami-core:"
		list    = `[{"id":"GPU-a","count":10,"devmem":24576,"devcore":100,"type":"NVIDIA A10","mode":"hami-core","health":true},{"id":"GPU-b","index":1,"count":10,"devmem":24576,"devcore":100,"type":"NVIDIA A10","health":false}]`
		volcano = "volcano.sh/node-vgpu-register"
	)
	gpu, vgpu := quantities("nvidia.com/gpu", 20), quantities("volcano.sh/vgpu-number", 20, "volcano.sh/vgpu-memory", 49152)
	share := pod(quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 3000, "nvidia.com/gpucores", 30), given, "GPU-b,NVIDIA,3000,30:;GPU-a,NVIDIA,1000,0:")
	tests := []struct {
		name          string
		key, register string
		units         map[string]int64
		pods          []sharing.Pod
		want          string
	}{
		{"HAMi before 2.9", hami, lines, gpu, []sharing.Pod{share}, "0 9/23576/100, 1 9/21576/70"},
		{"HAMi since 2.9, a card that is ill has no room", hami, list, gpu, []sharing.Pod{share}, "0 9/23576/100, 1 0/0/0!"},
		{"a pod that is being bound has it under another key", hami, lines, gpu,
			[]sharing.Pod{pod(quantities("nvidia.com/gpu", 1), "hami.io/vgpu-devices-to-allocate", "GPU-a,NVIDIA,24576,100:;")}, "0 9/0/0, 1 10/24576/100"},
		{"a pod without a record may be on any card, with all of its memory", hami, lines, gpu, []sharing.Pod{pod(quantities("nvidia.com/gpu", 1))}, "0 9/0/100, 1 9/0/100"},
		{"a record below 0 makes no room", hami, lines, gpu,
			[]sharing.Pod{pod(quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 4000), given, "GPU-a,NVIDIA,-999999,-50:;")}, "0 9/20576/100, 1 9/20576/100"},
		{"nor does one of a card that is not there", hami, lines, gpu,
			[]sharing.Pod{pod(quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 4000), given, "GPU-z,NVIDIA,1,0:;")}, "0 9/20576/100, 1 9/20576/100"},
		{"an instance lies on the card before its brackets", hami, lines, gpu,
			[]sharing.Pod{pod(quantities("nvidia.com/gpu", 1), given, "GPU-b[0-1],NVIDIA,4864,0:;")}, "0 10/24576/100, 1 9/19712/100"},
		{"while pods are not known nothing is free", hami, lines, gpu, nil, "0 ?/?/?, 1 ?/?/?"},
		{"cards that are cut have instances, not memory", hami, strings.ReplaceAll(lines, "hami-core", "mig"), gpu, []sharing.Pod{}, "0 10/?/100, 1 10/?/100"},
		{"Volcano", volcano, "GPU-a,10,24576,NVIDIA-A10,true,hami-core:GPU-b,10,24576,NVIDIA-A10,true,hami-core:", vgpu,
			[]sharing.Pod{pod(quantities("volcano.sh/vgpu-number", 1), "volcano.sh/vgpu-ids-new", "GPU-a,NVIDIA,2000,0:")}, "0 9/22576/100, 1 10/24576/100"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := sharing.Reader{}.Read(sharing.NodeObject{Annotations: map[string]string{test.key: test.register}, Allocatable: test.units, Pods: test.pods})
			if diff := cmp.Diff(test.want, cardText(got.PerCard)); diff != "" {
				t.Errorf("cards (-want +got):\n%s\n%v", diff, got.Problems)
			}
		})
	}
	below := sharing.Reader{}.Read(sharing.NodeObject{Annotations: map[string]string{hami: strings.Replace(lines, "24576", "-24576", 1)}, Allocatable: gpu})
	if len(below.PerCard) != 0 || len(below.Problems) != 1 || !strings.Contains(below.Problems[0].Message, "memory -24576") {
		t.Errorf("a register with memory below 0: %v, %v", below.PerCard, below.Problems)
	}
	broken := sharing.Reader{}.Read(sharing.NodeObject{Annotations: map[string]string{volcano: "GPU-a,ten,24576,A10,true,x:"}, Allocatable: vgpu})
	if len(broken.PerCard) != 0 || len(broken.Problems) != 1 || !strings.Contains(broken.Problems[0].Message, "field 2") {
		t.Errorf("a register that cannot be read: %v, %v", broken.PerCard, broken.Problems)
	}
}

func TestOfWholeCardsTheNumberThatIsFreeIsKnown(t *testing.T) {
	const marks = "n/gpu.product=Tesla-T4 n/gpu.count=3 n/gpu.memory=15360 n/gpu.replicas=1"
	used := []sharing.Pod{pod(quantities("nvidia.com/gpu", 1)), pod(quantities("nvidia.com/gpu", 1))}
	read := func(node sharing.NodeObject) sharing.GPUs {
		node.Labels, node.Allocatable = labels(marks), quantities("nvidia.com/gpu", 3)
		return sharing.Reader{}.Read(node)
	}
	got := read(sharing.NodeObject{Pods: used})
	if diff := cmp.Diff("- 1/15360/?, - 0/0/?, - 0/0/?", cardText(got.PerCard)); diff != "" || got.Free["nvidia.com/gpu"] != 1 {
		t.Errorf("free %v, cards (-want +got):\n%s", got.Free, diff)
	}
	if unknown := read(sharing.NodeObject{}); unknown.Free != nil || unknown.PerCard != nil {
		t.Errorf("while pods are not known: %v, %v", unknown.Free, unknown.PerCard)
	}
	report := `{"cards":[{"index":0,"uuid":"GPU-a","memoryMiB":15360,"freeMiB":15000,"healthy":true},{"index":1,"uuid":"GPU-b","memoryMiB":15360,"healthy":true},` +
		`{"index":2,"uuid":"GPU-c","memoryMiB":15360,"healthy":false,"problem":"XID 79"}]}`
	agent := map[string]string{sharing.AgentAnnotation: report}
	got = read(sharing.NodeObject{Annotations: agent, Pods: []sharing.Pod{}})
	if diff := cmp.Diff("0 1/15360/?, 1 1/15360/?, 2 0/0/?!", cardText(got.PerCard)); diff != "" || *got.PerCard[0].UnusedMiB != 15000 {
		t.Errorf("where all are free the agent's cards are (-want +got):\n%s", diff)
	}
	if len(got.Problems) != 1 || got.Problems[0].Code != sharing.DeviceUnhealthy || !strings.Contains(got.Problems[0].Message, "card 2 as unhealthy: XID 79") {
		t.Errorf("problems %v", got.Problems)
	}
	got = read(sharing.NodeObject{Annotations: agent, Pods: used})
	if diff := cmp.Diff("0 ?/?/?, 1 ?/?/?, 2 0/0/?!", cardText(got.PerCard)); diff != "" {
		t.Errorf("which of them are free nobody tells (-want +got):\n%s", diff)
	}
}

// agentText is a report.
const agentText = `{"cards":[` +
	`{"index":0,"uuid":"GPU-a","product":"NVIDIA H100 80GB HBM3","memoryMiB":81559,"freeMiB":81000,"mig":{"enabled":true,"instances":[{"profile":"1g.10gb","start":6}]},"healthy":true,"problem":""},` +
	`{"index":1,"uuid":"GPU-b","product":"NVIDIA H100 80GB HBM3","memoryMiB":81559,"freeMiB":null,"mig":{"enabled":false,"instances":[]},"healthy":false,"problem":"XID 79"}]}`

func TestTheAgentTellsTheInstancesOfEachCard(t *testing.T) {
	units := quantities("nvidia.com/mig-1g.10gb", 2)
	got := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: units, Annotations: map[string]string{sharing.AgentAnnotation: agentText},
		Pods: []sharing.Pod{pod(quantities("nvidia.com/mig-1g.10gb", 1))}})
	if diff := cmp.Diff("0 ?/?/? 1g.10gb@6, 1 0/0/?!", cardText(got.PerCard)); diff != "" || got.Free["nvidia.com/mig-1g.10gb"] != 1 {
		t.Errorf("free %v, cards (-want +got):\n%s", got.Free, diff)
	}
	broken := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: units, Annotations: map[string]string{sharing.AgentAnnotation: "{}"}})
	if len(broken.Problems) != 1 || broken.Problems[0].Code != sharing.LabelUnreadable || broken.PerCard != nil {
		t.Errorf("a report that cannot be read: %v, %v", broken.Problems, broken.PerCard)
	}
}

func TestDevicesOfResourceSlicesAreCardsWithWhatClaimsLeft(t *testing.T) {
	mig := func(name, profile string, mib int64, allocated bool) sharing.DRADevice {
		return sharing.DRADevice{Name: name, Type: "mig", ParentUUID: "GPU-a", Product: "NVIDIA H100 80GB HBM3", Profile: profile, MemoryMiB: mib, Allocated: &allocated}
	}
	yes, no := true, false
	whole := sharing.DRADevice{Name: "gpu-0", Type: "gpu", UUID: "GPU-a", Product: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, Allocated: &no}
	taken, ill, unknown := whole, whole, whole
	taken.Allocated, unknown.Allocated = &yes, nil
	ill.Name, ill.UUID, ill.Taint = "gpu-1", "GPU-b", "gpu.nvidia.com/xid"
	tests := []struct {
		name    string
		devices []sharing.DRADevice
		want    string
		kind    gpuinfo.Kind
	}{
		{"a free card and one with a taint", []sharing.DRADevice{ill, whole}, "0 ?/81559/?, 1 0/0/?!", gpuinfo.Whole},
		{"a card of which claims are not known", []sharing.DRADevice{unknown}, "0 ?/?/?", gpuinfo.Whole},
		{"a card that a claim has", []sharing.DRADevice{taken}, "0 ?/0/?", gpuinfo.Whole},
		{"instances that are there", []sharing.DRADevice{mig("gpu-0-mig-3g40gb-9-4", "3g.40gb", 40320, false), mig("gpu-0-mig-1g10gb-19-0", "1g.10gb", 9984, true)},
			"0 ?/40320/? 3g.40gb@4+ 1g.10gb@0", gpuinfo.MIG},
		{"instances that can be made", []sharing.DRADevice{whole, mig("gpu-0-mig-3g40gb-9-0", "3g.40gb", 40320, false), mig("gpu-0-mig-3g40gb-9-4", "3g.40gb", 40320, true)},
			"0 ?/41239/? 3g.40gb@4", gpuinfo.MIG},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: map[string]int64{}, Devices: test.devices,
				Labels: labels("n/gpu.present=true n/gpu.deploy.driver=true")})
			if diff := cmp.Diff(test.want, cardText(got.PerCard)); diff != "" || got.Kind != test.kind || got.Isolation != gpuinfo.Hardware || (len(got.Problems) > 0) != strings.Contains(test.want, "!") {
				t.Errorf("%s %s %v, cards (-want +got):\n%s", got.Kind, got.Isolation, got.Problems, diff)
			}
		})
	}
}

// TestAPodWithoutARecordOfItsCardIsNamed checks that the problem says which pod counts on every card, and what it lacks.
func TestAPodWithoutARecordOfItsCardIsNamed(t *testing.T) {
	const oneCard, twoCards = `GPU-a,10,15360,100,T4,0,true:`, `GPU-a,10,15360,100,T4,0,true:GPU-b,10,15360,100,T4,0,true:`
	hami := func(register string) sharing.NodeObject {
		return sharing.NodeObject{Annotations: map[string]string{"hami.io/node-nvidia-register": register}, Allocatable: quantities("nvidia.com/gpu", 20)}
	}
	ack := sharing.NodeObject{Labels: map[string]string{"aliyun.accelerator/nvidia_count": "2"}, Allocatable: quantities("aliyun.com/gpu-mem", 30, "aliyun.com/gpu-core.percentage", 200)}
	koordinator := sharing.NodeObject{Allocatable: quantities("koordinator.sh/gpu-core", 200, "koordinator.sh/gpu-memory-ratio", 200)}
	pod := func(name, annotations string, requests map[string]int64) sharing.Pod {
		p := sharing.Pod{Namespace: "other", Name: name, Requests: requests, Annotations: map[string]string{}}
		if key, value, set := strings.Cut(annotations, "="); set {
			p.Annotations[key] = value
		}
		return p
	}
	part := quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 8000)
	for name, test := range map[string]struct {
		node sharing.NodeObject
		pods []sharing.Pod
		want string
	}{
		"a record":                 {hami(twoCards), []sharing.Pod{pod("p", "hami.io/vgpu-devices-allocated=GPU-b,NVIDIA,8000,0:;", part)}, ""},
		"none":                     {hami(twoCards), []sharing.Pod{pod("p", "", part)}, "pod other/p has no annotation hami.io/vgpu-devices-allocated that names a card of this node, so its part counts on each of the 2 cards"},
		"of a card elsewhere":      {hami(twoCards), []sharing.Pod{pod("p", "hami.io/vgpu-devices-allocated=GPU-z,NVIDIA,8000,0:;", part)}, "pod other/p has"},
		"several, in any order":    {hami(twoCards), []sharing.Pod{pod("r", "", part), pod("p", "", part), pod("q", "", part)}, "pod other/p has no annotation hami.io/vgpu-devices-allocated that names a card of this node, so its part counts on each of the 2 cards, and 2 more pods like it"},
		"one card":                 {hami(oneCard), []sharing.Pod{pod("p", "", part)}, ""},
		"a pod without GPUs":       {hami(twoCards), []sharing.Pod{pod("p", "", nil)}, ""},
		"ACK's memory":             {ack, []sharing.Pod{pod("p", "", quantities("aliyun.com/gpu-mem", 8))}, "pod other/p has no annotation scheduler.framework.gpushare.allocation"},
		"ACK's cores":              {ack, []sharing.Pod{pod("p", `scheduler.framework.gpushare.allocation={"0":{"1":8}}`, quantities("aliyun.com/gpu-mem", 8, "aliyun.com/gpu-core.percentage", 30))}, "pod other/p has no annotation gpushare.alibabacloud.com/core-percentage"},
		"ACK's record":             {ack, []sharing.Pod{pod("p", `scheduler.framework.gpushare.allocation={"0":{"1":8}}`, quantities("aliyun.com/gpu-mem", 8))}, ""},
		"Koordinator":              {koordinator, []sharing.Pod{pod("p", "", quantities("koordinator.sh/gpu-core", 60, "koordinator.sh/gpu-memory-ratio", 60))}, "pod other/p has no annotation scheduling.koordinator.sh/device-allocated"},
		"Koordinator, another pod": {koordinator, []sharing.Pod{pod("p", "", quantities("example.com/fpga", 1))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.node.Pods = test.pods
			var got string
			for _, problem := range (sharing.Reader{}).Read(test.node).Problems {
				if problem.Code == sharing.CardUnrecorded {
					got += problem.Message
				}
			}
			if full := strings.Contains(test.want, "so its part"); full && got != test.want || !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("problem %q, want %q", got, test.want)
			}
		})
	}
}

func TestUnitsOfCardsThatAreNotWellAreTold(t *testing.T) {
	a100 := func(more string) map[string]string {
		return labels("nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=4 " + more)
	}
	hami := agentSees("well", "ill")
	hami["hami.io/node-nvidia-register"] = "GPU-0,10,8000,100,A2,0,true:GPU-1,10,8000,100,A2,0,true:"
	tests := []struct {
		name string
		node sharing.NodeObject
		want map[string]int64
	}{
		{"all are well", sharing.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/gpu", 4), Annotations: agentSees("well", "well", "well", "well")}, nil},
		{"one of four whole cards", sharing.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/gpu", 4), Annotations: agentSees("well", "ill", "well", "well")},
			quantities("nvidia.com/gpu", 3)},
		{"one that the plugin withdrew already", sharing.NodeObject{Labels: a100(""), Capacity: quantities("nvidia.com/gpu", 4), Allocatable: quantities("nvidia.com/gpu", 3),
			Annotations: agentSees("well", "ill", "well", "well")}, nil},
		{"shares of cards", sharing.NodeObject{Labels: a100("nvidia.com/gpu.replicas=5 nvidia.com/gpu.sharing-strategy=time-slicing"), Allocatable: quantities("nvidia.com/gpu", 20),
			Annotations: agentSees("well", "ill", "ill", "well")}, quantities("nvidia.com/gpu", 10)},
		{"instances under their own names", sharing.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/mig-3g.20gb", 3, "nvidia.com/mig-1g.5gb", 1),
			Annotations: agentSees("well:3g.20gb:1g.5gb", "ill:3g.20gb:3g.20gb", "well:", "well:")}, quantities("nvidia.com/mig-3g.20gb", 1)},
		{"cards beside cut ones", sharing.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/mig-3g.20gb", 2, "nvidia.com/gpu", 3),
			Annotations: agentSees("well:3g.20gb:3g.20gb", "ill", "well", "well")}, quantities("nvidia.com/gpu", 2)},
		{"instances under the name of cards", sharing.NodeObject{Labels: labels("nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-3g.20gb nvidia.com/mig.strategy=single nvidia.com/gpu.count=4"),
			Allocatable: quantities("nvidia.com/gpu", 4), Annotations: agentSees("well:3g.20gb:3g.20gb", "ill:3g.20gb:3g.20gb")}, quantities("nvidia.com/gpu", 2)},
		{"a layout that cannot be tells of no instances", sharing.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/mig-3g.20gb", 4),
			Annotations: agentSees("well:3g.20gb:3g.20gb:3g.20gb:3g.20gb", "ill:3g.20gb:3g.20gb")}, nil},
		{"memory in units", sharing.NodeObject{Labels: labels("ack.node.gpu.schedule=core_mem aliyun.accelerator/nvidia_count=4"),
			Allocatable: quantities("aliyun.com/gpu-mem", 60, "aliyun.com/gpu-core.percentage", 400), Annotations: agentSees("well", "ill", "well", "well"), Pods: []sharing.Pod{}},
			quantities("aliyun.com/gpu-mem", 45, "aliyun.com/gpu-core.percentage", 300)},
		{"HAMi's shares", sharing.NodeObject{Allocatable: quantities("nvidia.com/gpu", 20), Annotations: hami, Pods: []sharing.Pod{}}, quantities("nvidia.com/gpu", 10)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			read := sharing.Reader{}.Read(test.node)
			if diff := cmp.Diff(test.want, read.HealthyUnits); diff != "" {
				t.Errorf("kind %s, problems %v (-want +got):\n%s", read.Kind, read.Problems, diff)
			}
		})
	}
}

// agentSees returns an agent's report of A100 cards, one for each word: "well" or "ill", followed by MIG instances
// after colons.
func agentSees(words ...string) map[string]string {
	var cards []string
	for i, word := range words {
		state, layout, cut := strings.Cut(word, ":")
		var instances []string
		start := 0
		for profile := range strings.SplitSeq(layout, ":") {
			if profile != "" {
				instances = append(instances, fmt.Sprintf(`{"profile":%q,"start":%d}`, profile, start))
				start += 4
			}
		}
		cards = append(cards, fmt.Sprintf(`{"index":%d,"uuid":"GPU-%d","product":"NVIDIA A100-SXM4-40GB","memoryMiB":40960,"freeMiB":null,"mig":{"enabled":%t,"instances":[%s]},"healthy":%t,"problem":""}`,
			i, i, cut, strings.Join(instances, ","), state == "well"))
	}
	return map[string]string{sharing.AgentAnnotation: `{"cards":[` + strings.Join(cards, ",") + `]}`}
}
