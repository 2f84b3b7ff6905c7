package nodepool_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
)

const agentText = `{"cards":[` +
	`{"index":0,"uuid":"GPU-a","product":"NVIDIA H100 80GB HBM3","memoryMiB":81559,"freeMiB":81000,"mig":{"enabled":true,"instances":[{"profile":"1g.10gb","start":6}]},"healthy":true,"problem":""},` +
	`{"index":1,"uuid":"GPU-b","product":"NVIDIA H100 80GB HBM3","memoryMiB":81559,"freeMiB":null,"mig":{"enabled":false,"instances":[]},"healthy":false,"problem":"XID 79"}]}`

func TestAnAgentReportIsReadAsItWasWritten(t *testing.T) {
	report, err := nodepool.ParseAgentReport(agentText)
	if err != nil {
		t.Fatal(err)
	}
	free := int64(81000)
	want := nodepool.AgentReport{Cards: []nodepool.AgentCard{
		{
			Index: 0, UUID: "GPU-a", Product: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, FreeMiB: &free, Healthy: true,
			MIG: nodepool.AgentMIG{Enabled: true, Instances: []nodepool.AgentInstance{{Profile: "1g.10gb", Start: 6}}},
		},
		{
			Index: 1, UUID: "GPU-b", Product: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, Problem: "XID 79",
			MIG: nodepool.AgentMIG{Instances: []nodepool.AgentInstance{}},
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
	node := nodepool.GPUReader{}.Read(nodepool.NodeObject{Annotations: map[string]string{nodepool.AgentAnnotation: `{"cards":[{"index":3,"problem":"lost"}]}`}})
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
		{"more free than there is", `{"cards":[{"index":0,"memoryMiB":10,"freeMiB":11}]}`, "cards[0]: freeMiB 11: want 0 to the card's 10"},
		{"instances without MIG", `{"cards":[{"index":0,"memoryMiB":10,"mig":{"instances":[{"profile":"1g.5gb"}]}}]}`, "cards[0]: mig.instances"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := nodepool.ParseAgentReport(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
