package nodes

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestNodesWhoseCardsAreNotKnownAreReported checks that a RayCluster has a finding about nodes that its pods would use,
// and none about others.
func TestNodesWhoseCardsAreNotKnownAreReported(t *testing.T) {
	const twoCards = `GPU-a,4,15360,100,T4,0,true:GPU-b,4,15360,100,T4,0,true:`
	node := func(register, instanceType string) func(*corev1.Node) {
		return func(node *corev1.Node) {
			node.Labels, node.Annotations = map[string]string{"node.kubernetes.io/instance-type": instanceType}, nil
			if register != "" {
				node.Annotations = map[string]string{"hami.io/node-nvidia-register": register}
			}
		}
	}
	bare := kubePod("p", "a", "1")
	for name, test := range map[string]struct {
		change   func(*corev1.Node)
		pods     []corev1.Pod
		resource string
		want     string
	}{
		"more units than cards":       {node("", "g4dn.xlarge"), nil, "nvidia.com/gpu", "sharing-unlabelled Node a"},
		"other resources":             {node("", "g4dn.xlarge"), nil, "cpu", ""},
		"a register that is not read": {node("GPU-a,ten", ""), nil, "nvidia.com/gpu", "register-unreadable Node a"},
		"the same, other resources":   {node("GPU-a,ten", ""), nil, "cpu", ""},
		"a pod without a record":      {node(twoCards, ""), []corev1.Pod{*bare}, "nvidia.com/gpu", "card-unrecorded Node a"},
		"the same, other resources ":  {node(twoCards, ""), []corev1.Pod{*bare}, "cpu", ""},
		"a readable register":         {node(twoCards, ""), nil, "nvidia.com/gpu", ""},
		"units of another plugin":     {node(strings.ReplaceAll(twoCards, ",4,", ",10,"), ""), nil, "nvidia.com/gpu", "register-contradicted Node a"},
		"the same, other resources  ": {node(strings.ReplaceAll(twoCards, ",4,", ",10,"), ""), nil, "cpu", ""},
	} {
		t.Run(name, func(t *testing.T) {
			besidePods(t, &fakePods{list: test.pods}, func(t *testing.T, n *nodes, _ *atomic.Int32) {
				changed := cardNode("a", "8")
				test.change(changed)
				n.update(changed)
				time.Sleep(nodesPause)
				synctest.Wait()
				group := func(name string) nodepool.WorkerGroup {
					return nodepool.WorkerGroup{Name: name, Max: 1, Pod: landing.PodShape{Requests: landing.Quantities{test.resource: raydemand.One}}}
				}
				cluster := nodepool.Cluster{Key: llm, UID: "u", Groups: []nodepool.WorkerGroup{group("one"), group("two")}}
				n.addTo(&cluster)
				var got []string
				for _, f := range cluster.Findings {
					if strings.HasPrefix(f.Object, "Node ") {
						got = append(got, f.Code+" "+f.Object)
					}
				}
				if strings.Join(got, ", ") != test.want {
					t.Errorf("findings %q, want %q", got, test.want)
				}
			})
		})
	}
}
