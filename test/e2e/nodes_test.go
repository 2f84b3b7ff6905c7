package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// statement is an Event of a node autoscaler about a pod. The node autoscalers are not installed here.
type statement struct{ source, reason, message string }

var (
	triggered = statement{"cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gpu 0->1 (max: 1)}]"}
	refused   = statement{"cluster-autoscaler", "NotTriggerScaleUp",
		"pod didn't trigger scale-up: 1 in backoff after failed scale-up"}
)

// TestPodsComeWhereTheirNodesAre launches pods that never join Ray, on nodes of many kinds. Three groups provide the same
// to Ray; the only node of a pool has no more of the device that the first two take. A node autoscaler promises another
// node for the first and then cannot get it, and reports nothing about the second. While that silence lasts, requests for
// slices of GPUs get pods on nodes that have such slices; time slices, which guarantee nothing, serve none of them. Then
// two groups share the cards of one pool.
func TestPodsComeWhereTheirNodesAre(t *testing.T) {
	t.Parallel()
	stocked := func(name string, devices map[string]int64) rig.Group {
		return rig.Group{Name: name, Max: 4, Image: rig.SleeperImage, Devices: devices, Params: map[string]string{"resources": `"{\"stock\": 1}"`}}
	}
	scarce := map[string]int64{"example.com/scarce": 1}
	cluster := rig.Cluster{Name: "nodes", IdleSeconds: 600,
		Annotations: map[string]string{"heliostat.dev/price": `{"a-refused": 1, "b-silent": 2, "c-plenty": 3}`}, Groups: []rig.Group{
			stocked("a-refused", scarce), stocked("b-silent", scarce), stocked("c-plenty", nil), onCard("eight", 8), onCard("nine", 9),
		}}
	for _, g := range sliceGroups {
		g.Image, g.Max = rig.SleeperImage, 4
		cluster.Groups = append(cluster.Groups, g.Group)
	}
	s := stage(t, cluster)
	s.fills("gpus-scarce", "example.com/scarce")
	driver := s.drive()

	s.step("a node autoscaler refuses the first group, and the second is launched")
	s.do(driver, rig.Command{Do: "task", ID: "stock", Resources: map[string]float64{"stock": 1}})
	pod := s.firstPod("a-refused")
	s.say(triggered, pod)
	time.Sleep(1100 * time.Millisecond) // Event times are in whole seconds
	s.say(refused, pod)
	silent := s.firstPod("b-silent")
	s.closed("a-refused", "backoff after failed scale-up")

	s.step("requirements of slices have one pod each, where such slices are")
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

	s.step("two groups share the cards of a pool")
	s.sharesCards(driver, "eight", "nine")

	s.step("after enough silence about the second group, the third is launched")
	s.launchedAfterSilence("c-plenty", silent)
	s.closed("b-silent", "no node autoscaler adds a node")
	s.k8sEvent("GroupFailing")
	for _, group := range []string{"a-refused", "b-silent", "c-plenty"} {
		s.until("the operator to create a pod of "+group, func() bool { return len(s.workersEver(group)) > 0 })
		s.created(group, 1)
	}
}

// closed waits until a group has no node, and cools down, because of what a node autoscaler says.
func (s *scene) closed(group, why string) {
	s.Helper()
	s.told("that group "+group+" cools down: "+why, func(st status) bool {
		g := st.group(group)
		return strings.Contains(g.Closed, why) && slices.ContainsFunc(g.Reasons, func(r struct{ Code, Message string }) bool { return r.Code == "cooling_down" })
	})
}

// launchedAfterSilence waits until a group is launched, and checks that nobody had said anything about a pod of the group
// before it for long enough, which is the proof. The API server says when the pod was created, in whole seconds.
func (s *scene) launchedAfterSilence(group, pod string) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	object, err := lab.Kube.CoreV1().Pods(s.namespace).Get(ctx, pod, metav1.GetOptions{})
	s.must(err)
	s.patchedTo(group, 1)
	launched, _ := rig.First(s.journal.Facts(), func(f rig.Fact) bool { return f.Stage == rig.GroupPatched && f.Group == group })
	if silence := launched.At.Sub(object.CreationTimestamp.Time); silence < allocationTimeout/5 {
		s.Errorf("group %s was launched %v after pod %s, want %v of silence about it", group, silence, pod, allocationTimeout/5)
	}
}

// onCard is a group whose pods take GiB of one card of pool cards, and have a resource of their own. They never join Ray.
func onCard(name string, gib int64) rig.Group {
	return rig.Group{Name: name, Max: 4, Image: rig.SleeperImage, Devices: map[string]int64{"aliyun.com/gpu-mem": gib},
		NodeSelector: map[string]string{"alibabacloud.com/nodepool-id": "cards"},
		Params:       map[string]string{"resources": `"{\"` + name + `\": 1}"`}}
}

// sharesCards needs two workers of each of two groups. Each group fits twice on the two cards of a pool that cannot
// grow. Together, two pods fit.
func (s *scene) sharesCards(driver *rig.Driver, groups ...string) {
	s.Helper()
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

// fills runs a pod on the node that takes one unit of a resource.
func (s *scene) fills(node, device string) {
	s.Helper()
	takes := corev1.ResourceList{corev1.ResourceName(device): resource.MustParse("1")}
	_, err := lab.Kube.CoreV1().Pods(s.namespace).Create(s.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "filler"},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelHostname: node},
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "main", Image: "machine", Command: []string{"/bin/bash", "-c", "sleep 3600; true"},
				Resources: corev1.ResourceRequirements{Requests: takes, Limits: takes},
			}},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	ctx, cancel := s.patient()
	defer cancel()
	for {
		pod, err := lab.Kube.CoreV1().Pods(s.namespace).Get(ctx, "filler", metav1.GetOptions{})
		s.must(err)
		if pod.Spec.NodeName != "" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// firstPod waits for a group's first pod.
func (s *scene) firstPod(group string) (pod string) {
	s.Helper()
	s.eventually("a pod of "+group, func(facts []rig.Fact) bool {
		pods := rig.Pods(facts, group)
		if len(pods) > 0 {
			pod = pods[0]
		}
		return pod != ""
	})
	return pod
}

// say writes an Event about a pod as a node autoscaler does.
func (s *scene) say(what statement, pod string) {
	s.Helper()
	now := metav1.NewTime(time.Now())
	_, err := lab.Kube.CoreV1().Events(s.namespace).Create(s.ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod + "-", Namespace: s.namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: pod},
		Source:         corev1.EventSource{Component: what.source}, Type: corev1.EventTypeNormal,
		Reason: what.reason, Message: what.message,
		FirstTimestamp: now, LastTimestamp: now,
	}, metav1.CreateOptions{})
	s.must(err)
}
