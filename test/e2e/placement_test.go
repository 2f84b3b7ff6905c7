package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/test/rig"
)

// sliceGroups are groups with one slice of a GPU each. Their pods never join Ray.
var sliceGroups = []struct {
	rig.Group
	// nodes are those that have such slices.
	nodes []string
}{
	{rig.Group{Name: "small", Devices: map[string]int64{"nvidia.com/mig-1g.5gb": 1}}, []string{"gpus-mixed", "gpus-media", "aks-mig-0"}},
	{rig.Group{Name: "half", Devices: map[string]int64{"nvidia.com/mig-3g.20gb": 1}}, []string{"gpus-mixed"}},
	{rig.Group{Name: "card", Devices: map[string]int64{"nvidia.com/gpu": 1},
		NodeSelector: map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}}, []string{"gpu-0", "gpu-1"}},
	{rig.Group{Name: "limited", Devices: map[string]int64{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000},
		NodeSelector: map[string]string{"gpus": "hami"}}, []string{"gpus-hami"}},
	{rig.Group{Name: "sliced", Devices: map[string]int64{"nvidia.com/gpu": 1},
		NodeSelector: map[string]string{"gpus": "sliced"}}, []string{"gpus-sliced"}},
}

// TestSliceRequestsOverRESTGetTheSlicesThatMeetThem requests memory, compute and isolation of GPUs. One pod each serves
// them, on a node that has such slices. Time slices, which guarantee nothing, serve none of them. Then two groups share
// the cards of one pool.
func TestSlicesAreGivenToWhatTheyMeetAndShared(t *testing.T) {
	t.Parallel()
	cluster := rig.Cluster{Name: "slices", IdleSeconds: 600}
	for _, g := range sliceGroups {
		g.Image, g.Max = rig.SleeperImage, 4
		cluster.Groups = append(cluster.Groups, g.Group)
	}
	cluster.Groups = append(cluster.Groups, onCard("eight", 8), onCard("nine", 9))
	s := stage(t, cluster)
	const requests = `
		{"slice": {"memory": "4500Mi", "isolation": "hardware"}, "count": 2},
		{"slice": {"memory": "16Gi", "isolation": "hardware"}},
		{"slice": {"computeFraction": 0.9}},
		{"slice": {"memory": "3900Mi", "isolation": "limit"}}`
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [`+requests+`]}`)
	want := map[string]int{"small": 2, "half": 1, "card": 1, "limited": 1}
	for _, g := range sliceGroups {
		s.scheduled(g.Name, want[g.Name], g.nodes)
	}
	s.quiet("each requirement has its slice")
	for _, g := range sliceGroups {
		s.created(g.Name, want[g.Name])
	}
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [`+requests+`, {"slice": {"memory": "200Gi"}}]}`)
	s.told("that no slice has so much memory", func(st status) bool { return st.unmet("impossible") })
	s.rest(http.MethodDelete, "/request_resources", "")
	s.sharesCards("eight", "nine")
}

// onCard is a group whose pods take GiB of one card of pool cards, and have a resource of their own. They never join Ray.
func onCard(name string, gib int64) rig.Group {
	return rig.Group{Name: name, Max: 4, Image: rig.SleeperImage, Devices: map[string]int64{"aliyun.com/gpu-mem": gib},
		NodeSelector: map[string]string{"alibabacloud.com/nodepool-id": "cards"},
		Params:       map[string]string{"resources": `"{\"` + name + `\": 1}"`}}
}

// sharesCards needs two workers of each of two groups. Each group fits twice on the two cards of a pool that cannot
// grow. Together, two pods fit.
func (s *scene) sharesCards(groups ...string) {
	s.Helper()
	driver := s.drive()
	for _, name := range groups {
		for i := range 2 {
			s.do(driver, rig.Command{Do: "task", ID: fmt.Sprint(name, i), Resources: map[string]float64{name: 1}})
		}
	}
	pods := func(facts []rig.Fact) (all []string) {
		for _, name := range groups {
			all = append(all, rig.Pods(facts, name)...)
		}
		return all
	}
	s.eventually("a pod for each of the two cards", func(facts []rig.Fact) bool { return len(pods(facts)) >= 2 })
	s.told("what exceeds the cards", func(st status) bool { return st.unmet("capped") })
	s.quiet("the cards are full")
	if all := pods(s.journal.Facts()); len(all) != 2 {
		s.Errorf("pods %v were created, want 2 for two cards", all)
	}
}

// scheduled waits until the scheduler has bound n pods of the group, and checks their nodes.
func (s *scene) scheduled(group string, n int, nodes []string) {
	s.Helper()
	var bound []rig.Fact
	s.eventually(group+" to be scheduled", func(facts []rig.Fact) bool {
		bound = slices.DeleteFunc(slices.Clone(facts), func(f rig.Fact) bool { return f.Stage != rig.Scheduled || f.Group != group })
		return len(bound) >= n
	})
	for _, f := range bound {
		if node := strings.TrimPrefix(f.Detail, "on "); !slices.Contains(nodes, node) {
			s.Errorf("%s of group %s is on %s, want one of %v", f.Pod, group, node, nodes)
		}
	}
}
