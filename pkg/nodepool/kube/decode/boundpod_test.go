package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// podText reads a pod from YAML.
func podText(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	setRequests(pod) // as the API server does
	return pod
}

func quantityText(q landing.Quantities) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		all = append(all, fmt.Sprintf("%s %s", name, q[name]))
	}
	return strings.Join(all, ", ")
}

func TestABoundPodTakesWhatTheSchedulerCounts(t *testing.T) {
	for name, test := range map[string]struct{ spec, status, want string }{
		"requests of all containers, and one pod": {
			`containers: [{name: a, resources: {requests: {cpu: 500m, memory: 1Mi}}}, {name: b, resources: {requests: {cpu: "1", nvidia.com/gpu: "2"}, limits: {nvidia.com/gpu: "2"}}}]`, "",
			"cpu 1.5, memory 1048576, nvidia.com/gpu 2, pods 1"},
		"a limit without a request is a request": {
			`containers: [{name: a, resources: {limits: {cpu: "2", nvidia.com/gpu: "1", ephemeral-storage: 1Ki}}}]`, "",
			"cpu 2, ephemeral-storage 1024, nvidia.com/gpu 1, pods 1"},
		"a request below the limit stays": {
			`containers: [{name: a, resources: {requests: {cpu: "1"}, limits: {cpu: "2"}}}]`, "", "cpu 1, pods 1"},
		"the largest init container, if it needs more": {
			`{initContainers: [{name: i, resources: {requests: {cpu: "3"}}}, {name: j, resources: {requests: {cpu: "4", nvidia.com/gpu: "1"}}}], containers: [{name: a, resources: {requests: {cpu: "1"}}}]}`, "",
			"cpu 4, nvidia.com/gpu 1, pods 1"},
		"a sidecar stays beside the containers": {
			`{initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: "2", nvidia.com/gpu: "1"}}}, {name: i, resources: {requests: {cpu: "3"}}}], containers: [{name: a, resources: {requests: {cpu: "1", nvidia.com/gpu: "1"}}}]}`, "",
			"cpu 5, nvidia.com/gpu 2, pods 1"},
		"overhead of the runtime class": {
			`{overhead: {cpu: 250m, memory: 120Mi}, containers: [{name: a, resources: {requests: {cpu: "1"}}}]}`, "",
			"cpu 1.25, memory 125829120, pods 1"},
		"resources of the pod in place of its containers'": {
			`{resources: {requests: {cpu: "8"}}, containers: [{name: a, resources: {requests: {cpu: "1", nvidia.com/gpu: "1"}}}]}`, "",
			"cpu 8, nvidia.com/gpu 1, pods 1"},
		"a resize that the node has not finished": {
			`containers: [{name: a, resources: {requests: {cpu: "1"}}}]`,
			`containerStatuses: [{name: a, ready: true, restartCount: 0, image: i, imageID: i, resources: {requests: {cpu: "4"}}, allocatedResources: {cpu: "4"}}]`,
			"cpu 4, pods 1"},
		"a pod without requests is one pod": {`containers: [{name: a}]`, "", "pods 1"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podText(t, "metadata: {name: p, namespace: ns}\nspec:\n  "+test.spec+"\nstatus:\n  "+or(test.status, "phase: Running"))
			pod.Spec.NodeName = "node"
			bound, takes := Bound(pod)
			if got := quantityText(bound.Takes); !takes || got != test.want {
				t.Errorf("takes %s, %t; want %s", got, takes, test.want)
			}
		})
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func TestAPodOnANodeKeepsWhatDecidesBesideWhichPodsItRuns(t *testing.T) {
	pod := podText(t, `
metadata: {name: p, namespace: other, labels: {app: db, tier: a}}
spec:
  nodeName: a
  containers: []
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: db}, matchExpressions: [{key: tier, operator: Exists}]}}
      - {topologyKey: kubernetes.io/hostname, namespaces: [ml], namespaceSelector: {}}
      - {topologyKey: zone, labelSelector: {}}
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]
`)
	everywhere := landing.PodSelector{}
	want := &landing.Neighbors{
		Namespace: "other", Labels: map[string]string{"app": "db", "tier": "a"},
		Apart: []landing.PodTerm{
			{Selector: landing.PodSelector{Requirements: []landing.Requirement{{Key: "tier", Operator: "Exists"}, {Key: "app", Operator: "In", Values: []string{"db"}}}}},
			{Selector: landing.PodSelector{Nothing: true}, Namespaces: []string{"ml"}, NamespaceSelector: &everywhere},
		},
	}
	bound, _ := Bound(pod)
	if diff := cmp.Diff(want, bound.Neighbors); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	use := Use(sharing.Reader{}, sharing.NodeObject{}, []*BoundPod{&bound, &bound})
	if len(use.Pods) != 2 || use.Pods[0].Labels["app"] != "db" {
		t.Errorf("the node's pods are %+v", use.Pods)
	}
}

func TestAPodThatTakesNothingOrIsNoWorkerIsRecognized(t *testing.T) {
	const labels = "labels: {ray.io/cluster: c, ray.io/group: g, ray.io/node-type: worker}"
	for name, test := range map[string]struct{ pod, want string }{
		"a worker":                       {"metadata: {name: p, namespace: ns, " + labels + "}\nspec: {nodeName: a, containers: []}", "a ns/p c/g"},
		"one that is being deleted":      {"metadata: {name: p, namespace: ns, deletionTimestamp: 2026-01-01T00:00:00Z, " + labels + "}\nspec: {nodeName: a, containers: []}", "a ns/p c/g terminating"},
		"one that waits":                 {"metadata: {name: p, " + labels + "}\nspec: {containers: []}", ""},
		"one that has failed":            {"metadata: {name: p, " + labels + "}\nspec: {nodeName: a, containers: []}\nstatus: {phase: Failed}", ""},
		"one that has succeeded":         {"metadata: {name: p, " + labels + "}\nspec: {nodeName: a, containers: []}\nstatus: {phase: Succeeded}", ""},
		"the head":                       {"metadata: {name: h, labels: {ray.io/cluster: c, ray.io/group: headgroup, ray.io/node-type: head}}\nspec: {nodeName: a, containers: []}", "a /h /"},
		"a pod of something else":        {"metadata: {name: o}\nspec: {nodeName: b, containers: []}\nstatus: {phase: Pending}", "b /o /"},
		"a worker in an excerpt of pods": {"metadata: {name: p, labels: {ray.io/cluster: c, ray.io/group: g}}\nspec: {nodeName: a, containers: []}", "a /p c/g"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if bound, takes := Bound(podText(t, test.pod)); takes {
				got = fmt.Sprintf("%s %s/%s %s/%s", bound.Node, bound.Namespace, bound.Name, bound.RayCluster, bound.Group)
				if bound.Terminating {
					got += " terminating"
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// fixtureNode reads one of the recorded nodes, with more labels and annotations than the source shows.
func fixtureNode(t *testing.T, name string, labels, annotations map[string]string) (sharing.NodeObject, landing.Node) {
	t.Helper()
	node := readData[*corev1.Node](t, "testdata/nodes/"+name+".yaml")
	for into, more := range map[*map[string]string]map[string]string{&node.Labels: labels, &node.Annotations: annotations} {
		if *into == nil {
			*into = map[string]string{}
		}
		maps.Copy(*into, more)
	}
	return ForGPUs(node), ForPodFit(sharing.Reader{}, node)
}

func cardsText(cards []sharing.Card) string {
	number := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}
	var all []string
	for _, c := range cards {
		all = append(all, number(c.FreeUnits)+"/"+number(c.FreeMiB)+"/"+number(c.FreeCores))
	}
	return strings.Join(all, ", ")
}

// TestPodsLeaveOfEachCardWhatTheirRecordsSay uses the nodes and the annotations that ACK, the open-source gpushare,
// HAMi and Volcano write. Cards are units, MiB and percent of cores that are free.
func TestPodsLeaveOfEachCardWhatTheirRecordsSay(t *testing.T) {
	four := map[string]string{"ack.node.gpu.schedule": "cgpu", "aliyun.accelerator/nvidia_count": "4"}
	volcano := map[string]string{"volcano.sh/node-vgpu-register": "GPU-a,10,8192,NVIDIA-RTX 3070 Ti,true,hami-core:"}
	pod := func(limits, annotations string) string {
		return "metadata: {name: p, namespace: other, annotations: " + annotations + "}\nspec: {nodeName: n, containers: [{name: a, resources: {limits: " + limits + "}}]}"
	}
	for name, test := range map[string]struct {
		node                string
		labels, annotations map[string]string
		pods                []string
		want, requests      string
	}{
		"ACK's node as its documentation shows it": {
			"ack-shared-binpack-four-cards", four, nil,
			[]string{
				pod(`{aliyun.com/gpu-mem: 15}`, `{scheduler.framework.gpushare.allocation: '{"0":{"0":15}}'}`),
				pod(`{aliyun.com/gpu-mem: 9}`, `{scheduler.framework.gpushare.allocation: '{"0":{"1":9}}'}`),
			}, "0/0/?, 6/6144/?, 15/15360/?, 15/15360/?", "aliyun.com/gpu-mem 24, pods 2"},
		"without a record the pod counts on every card": {
			"ack-shared-binpack-four-cards", four, nil, []string{pod(`{aliyun.com/gpu-mem: 9}`, `{}`)},
			"6/6144/?, 6/6144/?, 6/6144/?, 6/6144/?", "aliyun.com/gpu-mem 9, pods 1"},
		"gpushare's record": {
			"ack-shared-binpack-four-cards", four, nil,
			[]string{pod(`{aliyun.com/gpu-mem: 9}`, `{ALIYUN_COM_GPU_MEM_IDX: "2", ALIYUN_COM_GPU_MEM_POD: "9"}`)},
			"15/15360/?, 15/15360/?, 6/6144/?, 15/15360/?", "aliyun.com/gpu-mem 9, pods 1"},
		"no pods": {
			"ack-shared-binpack-four-cards", four, nil, nil, "15/15360/?, 15/15360/?, 15/15360/?, 15/15360/?", ""},
		"HAMi": {
			"hami-rtx-pro-6000-json", nil, nil,
			[]string{pod(`{nvidia.com/gpu: 1, nvidia.com/gpumem: 3000, nvidia.com/gpucores: 30}`, `{hami.io/vgpu-devices-allocated: "UUID,NVIDIA,3000,30:;"}`)},
			"9/94887/70", "nvidia.com/gpu 1, nvidia.com/gpucores 30, nvidia.com/gpumem 3000, pods 1"},
		"half of a HAMi card in percent, without a record": {
			"hami-rtx-pro-6000-json", nil, nil, []string{pod(`{nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 50}`, `{}`)},
			"9/48944/100", "nvidia.com/gpu 1, nvidia.com/gpumem-percentage 50, pods 1"},
		"Volcano": {
			"volcano-vgpu-rtx3070", nil, volcano,
			[]string{pod(`{volcano.sh/vgpu-number: 1, volcano.sh/vgpu-memory: 2000}`, `{volcano.sh/vgpu-ids-new: "GPU-a,NVIDIA,2000,0:"}`)},
			"9/6192/100", "pods 1, volcano.sh/vgpu-memory 2000, volcano.sh/vgpu-number 1"},
		"whole cards": {
			"eks-karpenter-p4d", nil, nil, []string{pod(`{nvidia.com/gpu: 5, cpu: 4}`, `{}`)},
			"1/40960/?, 1/40960/?, 1/40960/?, 0/0/?, 0/0/?, 0/0/?, 0/0/?, 0/0/?", "cpu 4, nvidia.com/gpu 5, pods 1"},
	} {
		t.Run(name, func(t *testing.T) {
			node, fit := fixtureNode(t, test.node, test.labels, test.annotations)
			var pods []*BoundPod
			for _, text := range test.pods {
				text = strings.ReplaceAll(text, "UUID", firstUUID(node))
				bound, takes := Bound(podText(t, text))
				if !takes {
					t.Fatal("the pod takes nothing")
				}
				pods = append(pods, &bound)
			}
			use := Use(sharing.Reader{}, node, pods)
			if got := cardsText(use.Cards); got != test.want {
				t.Errorf("free on cards %s, want %s", got, test.want)
			}
			if got := quantityText(use.Requests); got != test.requests {
				t.Errorf("requests %s, want %s", got, test.requests)
			}
			used := fit
			used.Use = use
			if !used.Equal(fit) || len(landing.NodesOf([]landing.Node{used, fit}, landing.Pools{}).For(&landing.PodShape{})) != 1 {
				t.Error("what pods take changes what the node is")
			}
		})
	}
}

// firstUUID returns the identity of a node's first card in HAMi's register.
func firstUUID(node sharing.NodeObject) string {
	_, rest, _ := strings.Cut(node.Annotations["hami.io/node-nvidia-register"], `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

func TestNodepoolsShowsAsFreeWhatThePlannerCounts(t *testing.T) {
	node := readData[*corev1.Node](t, "testdata/nodes/eks-karpenter-p4d.yaml")
	pod := podText(t, "metadata: {name: p}\nspec: {nodeName: "+node.Name+", initContainers: [{name: s, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 1}}}, {name: i, resources: {limits: {nvidia.com/gpu: 3}}}], containers: [{name: a, resources: {limits: {nvidia.com/gpu: 2}}}]}")
	set := &NodeSet{nodes: []sharing.NodeObject{ForGPUs(node)}}
	set.addPod(pod)
	read := sharing.Reader{}.Read(set.Nodes()[0])
	bound, _ := Bound(pod)
	use := Use(sharing.Reader{}, ForGPUs(node), []*BoundPod{&bound})
	// The sidecar runs beside the init container that needs 3.
	if free := read.Free["nvidia.com/gpu"]; free != 4 || cardsText(read.PerCard) != cardsText(use.Cards) {
		list, _ := json.Marshal(read.PerCard)
		t.Errorf("%d are free, want 4; cards %s, want %s", free, list, cardsText(use.Cards))
	}
}

func TestInstancesOfOpenShiftsSlicerAreOfferedAndTakenAsPodsRequestThem(t *testing.T) {
	const announced, requested = "mig.das.com/1g.5gb", "nvidia.com/mig-1g.5gb"
	object := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{announced: resource.MustParse("14")}}}
	node := ForPodFit(sharing.Reader{}, object)
	use := Use(sharing.Reader{}, ForGPUs(object), []*BoundPod{{Takes: landing.Quantities{announced: raydemand.One}}})
	if node.Allocatable[requested] != raydemand.Whole(14) || use.Requests[requested] != raydemand.One {
		t.Errorf("offered %v, taken %v", node.Allocatable, use.Requests)
	}
}

// TestAPodOnAWholeCardOfAscendTakesAllItsShares has a pod as HAMi's webhook leaves it, with the memory of a card.
func TestAPodOnAWholeCardOfAscendTakesAllItsShares(t *testing.T) {
	const chip = "huawei.com/Ascend910B4"
	node := sharing.NodeObject{Name: "n", Allocatable: map[string]int64{chip: 8}, Annotations: map[string]string{
		"hami.io/node-register-Ascend910B4": `[{"id":"a","count":4,"devmem":32768,"type":"Ascend910B4","health":true},{"id":"b","index":1,"count":4,"devmem":32768,"type":"Ascend910B4","health":true}]`}}
	pods := []*BoundPod{
		{Takes: landing.Quantities{chip: raydemand.One, chip + "-memory": raydemand.Whole(32768)}},
		{Takes: landing.Quantities{chip: raydemand.One, chip + "-memory": raydemand.Whole(8192)}},
	}
	if got := Use(sharing.Reader{}, node, pods).Requests[chip]; got != raydemand.Whole(5) {
		t.Errorf("the pods take %s shares, want 4 and 1", got)
	}
}

func TestATemplateSaysWhichPortsOfTheNodeItsPodsTake(t *testing.T) {
	for _, test := range []struct {
		name, spec string
		want       []landing.HostPort
	}{
		{"none", `containers: [{name: ray, ports: [{containerPort: 8080}]}]`, nil},
		{"a host port", `containers: [{name: ray, ports: [{containerPort: 80, hostPort: 8000, hostIP: 10.0.0.1, protocol: UDP}]}]`,
			[]landing.HostPort{{IP: "10.0.0.1", Protocol: "UDP", Port: 8000}}},
		{"on the node's network, with the operator's port", `{hostNetwork: true, containers: [{name: ray, ports: [{containerPort: 6379}]}, {name: log, ports: [{containerPort: 24224}]}]}`,
			[]landing.HostPort{{Port: 6379}, {Port: 8080}, {Port: 24224}}},
		{"with a port for metrics of its own", `{hostNetwork: true, containers: [{name: ray, ports: [{name: metrics, containerPort: 8090}]}]}`,
			[]landing.HostPort{{Port: 8090}}},
		{"an init container that stays", `{initContainers: [{name: i, ports: [{hostPort: 1}]}, {name: s, restartPolicy: Always, ports: [{hostPort: 2}]}], containers: [{name: ray}]}`,
			[]landing.HostPort{{Port: 2}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := &Report{}
			got := hostPorts(podOf(FieldsOf(map[string]any{"spec": objectOf(t, test.spec)}, report)))
			if diff := cmp.Diff(test.want, got); diff != "" || len(report.All) > 0 {
				t.Errorf("findings %v, ports (-want +got):\n%s", report.All, diff)
			}
		})
	}
}

func TestATemplateSaysBesideWhichPodsItsPodsMayRun(t *testing.T) {
	report := &Report{}
	group := FieldsOf(objectOf(t, `
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
        - {topologyKey: rack, labelSelector: {matchLabels: {ray.io/group: gpu}}, mismatchLabelKeys: [ray.io/worker-group-replica-name]}
      podAffinity:
        requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack, labelSelector: {}, matchLabelKeys: [ray.io/worker-group-replica-name]}]
    topologySpreadConstraints:
    - {topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}
    - {topologyKey: kubernetes.io/hostname, maxSkew: 2, minDomains: 3, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor, nodeAffinityPolicy: Ignore,
       labelSelector: {matchLabels: {ray.io/group: gpu}}}
    - {topologyKey: zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}
`), report)
	got := neighbors(podOf(group.Object("template")), nodepool.ClusterKey{Namespace: "ml", Name: "llm"},
		podLabels(group, "llm", workerNode), 2)
	in := func(key, value string) landing.Requirement {
		return landing.Requirement{Key: key, Operator: "In", Values: []string{value}}
	}
	want := landing.Neighbors{
		Namespace: "ml",
		Labels: map[string]string{
			"ray.io/cluster": "llm", "ray.io/group": "gpu", "ray.io/node-type": "worker", "ray.io/is-ray-node": "yes", "ray.io/identifier": "llm-worker",
			"app.kubernetes.io/name": "mine", "app.kubernetes.io/created-by": "kuberay-operator", "zone": "a", "team": "ml",
		},
		Apart: []landing.PodTerm{{Selector: landing.PodSelector{Requirements: []landing.Requirement{
			{Key: "ray.io/cluster", Operator: "Exists"}, in("ray.io/node-type", "worker"), in("team", "ml")}}},
			{NamespaceSelector: &landing.PodSelector{},
				Selector: landing.PodSelector{Requirements: []landing.Requirement{{Key: "team", Operator: "NotIn", Values: []string{"ml"}}}}},
			{Namespaces: []string{"data"}, Selector: landing.PodSelector{Nothing: true}},
		},
		Domain: landing.ReplicaDomain{Key: "rack", Hosts: 2, Alone: []landing.PodTerm{{Selector: landing.PodSelector{Requirements: []landing.Requirement{in("ray.io/group", "gpu")}}}}},
		Beyond: "podAntiAffinity with topologyKey rack",
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
