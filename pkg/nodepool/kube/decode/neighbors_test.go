package decode

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

func TestATemplateSaysBesideWhichPodsItsPodsMayRun(t *testing.T) {
	report := &Report{}
	got := neighbors(FieldsOf(objectOf(t, `
groupName: gpu
labels: {zone: a, team: ml}
template:
  metadata: {labels: {team: x, app.kubernetes.io/name: mine, ray.io/group: other, ray.io/cluster: other, ray.io/node-type: head}}
  spec:
    affinity:
      podAntiAffinity:
        preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {}}}]
        requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {ray.io/node-type: worker}, matchExpressions: [{key: ray.io/cluster, operator: Exists}]}
          matchLabelKeys: [team, absent]
        - {topologyKey: kubernetes.io/hostname, labelSelector: {}, namespaceSelector: {}, mismatchLabelKeys: [team]}
        - {topologyKey: kubernetes.io/hostname, namespaces: [data]}
      podAffinity:
        requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack, labelSelector: {}}]
    topologySpreadConstraints:
    - {topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}
    - {topologyKey: kubernetes.io/hostname, maxSkew: 2, minDomains: 3, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor, nodeAffinityPolicy: Ignore,
       labelSelector: {matchLabels: {ray.io/group: gpu}}}
    - {topologyKey: zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}
`), report), nodepool.ClusterKey{Namespace: "ml", Name: "llm"})
	in := func(key, value string) landing.Requirement {
		return landing.Requirement{Key: key, Operator: "In", Values: []string{value}}
	}
	want := landing.Neighbors{
		Namespace: "ml",
		Labels: map[string]string{
			"ray.io/cluster": "llm", "ray.io/group": "gpu", "ray.io/node-type": "worker", "ray.io/is-ray-node": "yes", "ray.io/identifier": "llm-worker",
			"app.kubernetes.io/name": "mine", "app.kubernetes.io/created-by": "kuberay-operator", "zone": "a", "team": "ml",
		},
		Apart: []landing.PodTerm{{Namespaces: []string{}, Selector: landing.PodSelector{Requirements: []landing.Requirement{
			{Key: "ray.io/cluster", Operator: "Exists", Values: []string{}}, in("ray.io/node-type", "worker"), in("team", "ml")}}},
			{Namespaces: []string{}, NamespaceSelector: &landing.PodSelector{},
				Selector: landing.PodSelector{Requirements: []landing.Requirement{{Key: "team", Operator: "NotIn", Values: []string{"ml"}}}}},
			{Namespaces: []string{"data"}, Selector: landing.PodSelector{Nothing: true}},
		},
		Beyond: "podAffinity with topologyKey rack",
		Spread: []landing.SpreadTerm{{MaxSkew: 2, MinDomains: 3, HonorsTaints: true, IgnoresAffinity: true,
			Selector: landing.PodSelector{Requirements: []landing.Requirement{in("ray.io/group", "gpu")}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(report.All) > 0 {
		t.Errorf("findings %v, neighbors (-want +got):\n%s", report.All, diff)
	}
}

func TestALongIdentifierKeepsItsEnd(t *testing.T) {
	long := strings.Repeat("a", 56)
	for value, want := range map[string]string{"llm-worker": "llm-worker", long + "-worker": long + "-worker", "x" + long + "-worker": long + "-worker",
		strings.Repeat("b-", 28) + "a-worker": "r" + strings.Repeat("b-", 28)[1:] + "a-worker"} {
		if len(value) > 63 && value[len(value)-63] == '-' {
			want = "r" + value[len(value)-62:]
		}
		if got := identifier(value); got != want {
			t.Errorf("identifier of %s is %s, want %s", value, got, want)
		}
	}
}
