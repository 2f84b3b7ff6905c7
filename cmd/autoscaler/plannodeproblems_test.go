package main

import (
	"strings"
	"testing"
)

// TestAPlanReportsNodesWhoseCardsAreNotKnown checks that a finding names the node, and that nothing is launched which
// needs what the node does not prove.
func TestAPlanReportsNodesWhoseCardsAreNotKnown(t *testing.T) {
	half := []jointGroup{{name: "a", limits: "nvidia.com/gpu=1 nvidia.com/gpumem=8000"}}
	register := func(text string) string {
		node := jointNode("n1", "gpu=on", "nvidia.com/gpu=20")
		return strings.Replace(node, `"name": "n1"`, `"name": "n1", "annotations": {"hami.io/node-nvidia-register": "`+text+`"}`, 1)
	}
	const unrecorded = `{"metadata": {"name": "p", "namespace": "other"}, "spec": {"nodeName": "n1", "containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000"}}}]}}`
	for name, test := range map[string]struct {
		groups   []jointGroup
		node     string
		pods     string
		launches int
		code     string
	}{
		"HAMi's register":              {half, register(`GPU-a,10,15360,100,T4,0,true:GPU-b,10,15360,100,T4,0,true:`), "", 2, ""},
		"one that cannot be read":      {half, register(`GPU-a,ten,15360,100,T4,0,true:`), "", 0, "register-unreadable"},
		"the same, and whole cards":    {[]jointGroup{gpuGroup("a", 1)}, register(`[{`), "", 0, "register-unreadable"},
		"a pod without a record":       {half, register(`GPU-a,10,15360,100,T4,0,true:GPU-b,10,15360,100,T4,0,true:`), unrecorded, 0, "card-unrecorded"},
		"one without cards":            {half, register(`[]`), "", 0, "register-unreadable"},
		"more units than cards":        {[]jointGroup{gpuGroup("a", 1)}, jointNode("n1", "node.kubernetes.io/instance-type=g4dn.xlarge", "nvidia.com/gpu=10"), "", 10, "sharing-unlabelled"},
		"as many units as cards":       {[]jointGroup{gpuGroup("a", 1)}, jointNode("n1", "node.kubernetes.io/instance-type=g4dn.xlarge", "nvidia.com/gpu=1"), "", 1, ""},
		"a label that says why it has": {[]jointGroup{gpuGroup("a", 1)}, jointNode("n1", "nvidia.com/gpu.product=Tesla-T4-SHARED nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=10", "nvidia.com/gpu=10"), "", 10, ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan, sum, codes := planOf(t, strings.Replace(jointSnapshot(test.groups, test.node, onlyP), `"kubeNodes":`, `"kubePods": [`+test.pods+`], "kubeNodes":`, 1)), 0, ""
			for _, n := range plan.Launch {
				sum += n
			}
			for _, f := range plan.Findings {
				if f.Object == "Node n1" {
					codes += f.Code
				}
			}
			if sum != test.launches || codes != test.code {
				t.Errorf("launches %d, findings %q; want %d, %q", sum, codes, test.launches, test.code)
			}
		})
	}
}
