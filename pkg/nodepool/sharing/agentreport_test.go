package sharing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

const agentText = `{"cards":[` +
	`{"index":0,"uuid":"GPU-a","product":"NVIDIA H100 80GB HBM3","memoryMiB":81559,"freeMiB":81000,"mig":{"enabled":true,"instances":[{"profile":"1g.10gb","start":6}]},"healthy":true,"problem":""},` +
	`{"index":1,"uuid":"GPU-b","product":"NVIDIA H100 80GB HBM3","memoryMiB":81559,"freeMiB":null,"mig":{"enabled":false,"instances":[]},"healthy":false,"problem":"XID 79"}]}`

func TestAnAgentReportIsReadAsItWasWritten(t *testing.T) {
	report, err := sharing.ParseAgentReport(agentText)
	if err != nil {
		t.Fatal(err)
	}
	free := int64(81000)
	want := sharing.AgentReport{Cards: []sharing.AgentCard{
		{
			Index: 0, UUID: "GPU-a", Product: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, FreeMiB: &free, Healthy: true,
			MIG: sharing.AgentMIG{Enabled: true, Instances: []gpuinfo.Instance{{Profile: "1g.10gb", Start: 6}}},
		},
		{
			Index: 1, UUID: "GPU-b", Product: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, Problem: "XID 79",
			MIG: sharing.AgentMIG{Instances: []gpuinfo.Instance{}},
		},
	}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Fatalf("report (-want +got):\n%s", diff)
	}
	written, err := report.Annotation()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(agentText, written); diff != "" {
		t.Errorf("annotation (-want +got):\n%s", diff)
	}
}

func TestALostCardMayHaveNoMemory(t *testing.T) {
	node := sharing.Reader{}.Read(sharing.NodeObject{Annotations: map[string]string{sharing.AgentAnnotation: `{"cards":[{"index":3,"problem":"lost"}]}`}})
	if len(node.PerCard) != 1 || node.PerCard[0].MemoryMiB != nil || node.PerCard[0].Healthy == nil || *node.PerCard[0].Healthy {
		t.Errorf("cards are %+v, problems %v", node.PerCard, node.Problems)
	}
}

func TestAnAgentReportThatCannotBeNamesTheCardAndTheField(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no JSON", "cards", "reading heliostat.dev/gpus"},
		{"no cards", `{}`, "cards is missing"},
		{"a negative index", `{"cards":[{"index":-1,"memoryMiB":1}]}`, "cards[0]: index -1"},
		{"the same card twice", `{"cards":[{"index":0,"memoryMiB":1},{"index":0,"memoryMiB":1}]}`, "cards[1]: index 0 occurs twice"},
		{"no memory", `{"cards":[{"index":0,"healthy":true}]}`, "cards[0]: memoryMiB 0"},
		{"more free than there is", `{"cards":[{"index":0,"memoryMiB":10,"freeMiB":11}]}`, "cards[0]: freeMiB 11: want 0 to 10, the card's memory"},
		{"instances without MIG", `{"cards":[{"index":0,"memoryMiB":10,"mig":{"instances":[{"profile":"1g.5gb"}]}}]}`, "cards[0]: mig.instances"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := sharing.ParseAgentReport(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestAReportOfAnotherTimeOrAnotherStartOfTheMachineIsNotCounted(t *testing.T) {
	noon := time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name, boot string
		written    time.Time
		seen       time.Time
		want       string
	}{
		{"just written", "b1", noon, noon, ""},
		{"two writes were missed", "b1", noon, noon.Add(45 * time.Minute), ""},
		{"nobody writes any more", "b1", noon, noon.Add(46 * time.Minute), "it is older than 45 minutes, so no agent is running there"},
		{"the clock of the machine is ahead", "b1", noon.Add(time.Hour), noon, "its time is more than 45 minutes ahead: the machine's clock is wrong"},
		{"of an agent that tells no time", "b1", time.Time{}, noon, "it has no time"},
		{"before the machine started anew", "b0", noon, noon, "the machine has rebooted since it was written"},
		{"a node of a file, of any age", "b1", noon, time.Time{}, ""},
		{"a node of a file, before its start", "b0", noon, time.Time{}, "the machine has rebooted since it was written"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			report := sharing.AgentReport{At: test.written, BootID: test.boot, Cards: []sharing.AgentCard{{Index: 0, MemoryMiB: 40960, Problem: "XID 79"}}}
			value, err := report.Annotation()
			if err != nil {
				t.Fatal(err)
			}
			read := sharing.Reader{At: test.seen}.Read(sharing.NodeObject{
				BootID: "b1", Annotations: map[string]string{sharing.AgentAnnotation: value}, Allocatable: map[string]int64{"nvidia.com/gpu": 1},
			})
			want, cards := []sharing.Problem{{Code: sharing.AgentOutdated, Message: "heliostat.dev/gpus is ignored: " + test.want}}, 0
			if test.want == "" {
				want, cards = []sharing.Problem{{Code: sharing.DeviceUnhealthy, Message: "the agent reports card 0 as unhealthy: XID 79"}}, 1
			}
			if diff := cmp.Diff(want, read.Problems); diff != "" || len(read.PerCard) != cards || len(read.HealthyUnits) != cards {
				t.Errorf("cards %+v, well %v (-want +got):\n%s", read.PerCard, read.HealthyUnits, diff)
			}
		})
	}
}
