package nodeobject

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

func TestANodeIsEmptyIfItsPodsBelongToIt(t *testing.T) {
	ownedBy := func(kind string) string {
		return "metadata: {name: p, namespace: ns, ownerReferences: [{apiVersion: v1, kind: " + kind +
			", name: o, uid: u, controller: true}]}\nspec: {nodeName: a, containers: []}"
	}
	for name, test := range map[string]struct {
		pods []string
		want bool
	}{
		"no pods":                     {nil, true},
		"a DaemonSet's, a static one": {[]string{ownedBy("DaemonSet"), ownedBy("Node")}, true},
		"a worker":                    {[]string{ownedBy("DaemonSet"), ownedBy("RayCluster")}, false},
		"a pod without an owner":      {[]string{"metadata: {name: p, namespace: ns}\nspec: {nodeName: a, containers: []}"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var whole, stripped []*BoundPod
			for _, text := range test.pods {
				pod := podOf(t, text)
				kept, err := StripPod(pod)
				if err != nil {
					t.Fatal(err)
				}
				of, _ := Bound(pod)
				ofKept, _ := Bound(kept.(*corev1.Pod))
				whole, stripped = append(whole, &of), append(stripped, &ofKept)
			}
			for what, pods := range map[string][]*BoundPod{"whole": whole, "stripped": stripped} {
				if got := Use(nodegpu.Reader{}, nodegpu.NodeObject{}, pods).Empty; got != test.want {
					t.Errorf("%s: empty is %t, want %t", what, got, test.want)
				}
			}
		})
	}
}
