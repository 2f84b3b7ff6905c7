package kube

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

const refusedCluster = `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: llm, namespace: ml, uid: u, resourceVersion: "7", generation: 2}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: h, image: i, env: [{name: RAY_REDIS_ADDRESS, value: redis}]}]}}}
  workerGroupSpecs: [{groupName: g, maxReplicas: 4, template: {spec: {containers: [{name: w, image: i}]}}}]
status: {observedGeneration: 0}
`

func clusterOf(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// The operator stops working on a RayCluster that it refuses, so nothing is planned for it. What it has accepted counts,
// whatever the rules of version 1.6.2 say.
func TestARayClusterThatTheOperatorRefusesIsMarked(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		refused bool
	}{
		"refused":                            {refusedCluster, true},
		"accepted":                           {strings.Replace(refusedCluster, "observedGeneration: 0", "observedGeneration: 2", 1), false},
		"an earlier generation was accepted": {strings.Replace(refusedCluster, "observedGeneration: 0", "observedGeneration: 1", 1), false},
		"without fault":                      {strings.Replace(refusedCluster, "RAY_REDIS_ADDRESS", "A", 1), false},
		"a long name":                        {strings.Replace(refusedCluster, "name: llm", "name: "+strings.Repeat("a", 60), 1), true},
	} {
		read := newDecodeCache(sharing.Reader{}).decode(clusterOf(t, c.text))
		said := false
		for _, f := range read.Findings {
			said = said || f.Code == nodepool.SpecRefused && f.Field == "spec"
		}
		if read.Cluster.Refused != c.refused || said != c.refused {
			t.Errorf("%s: refused %v, findings %v", name, read.Cluster.Refused, read.Findings)
		}
	}
}

func BenchmarkOperatorVerdict(b *testing.B) {
	object := clusterOf(b, strings.Replace(refusedCluster, "RAY_REDIS_ADDRESS", "A", 1)).Object
	for b.Loop() {
		if err := OperatorVerdict(object); err != nil {
			b.Fatal(err)
		}
	}
}
