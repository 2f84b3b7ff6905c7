package e2e

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/rig"
)

// TestAGangLandsInOneRackAndMovesAsAWhole runs the worker group of docs/howto/racks.md: each replica has a rack for
// itself, and its name is the domain in Ray. Two gangs start from zero. One loses a host and moves to a new replica.
func TestAGangLandsInOneRackAndMovesAsAWhole(t *testing.T) {
	t.Parallel()
	const replicaName, clique = "ray.io/worker-group-replica-name", "nvidia.com/gpu.clique"
	term := func(keys string) []any {
		return []any{map[string]any{"topologyKey": clique, keys: []any{replicaName},
			"labelSelector": map[string]any{"matchLabels": map[string]any{"ray.io/group": "racks"}}}}
	}
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	s := stage(t, rig.Cluster{Name: "racks", IdleSeconds: 600, Groups: []rig.Group{{
		Name: "racks", Max: 3, Hosts: 2, Devices: map[string]int64{"example.com/tray": 1}, NodeSelector: map[string]string{"racks": "nvlink"},
		Params: map[string]string{"resources": `"{\"tray\": 1}"`},
		Env: []any{
			map[string]any{"name": "REPLICA", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.labels['" + replicaName + "']"}}},
			map[string]any{"name": "RAY_OVERRIDE_LABELS", "value": `{"` + domain + `": "$(REPLICA)"}`},
		},
		Affinity: map[string]any{
			"podAffinity":     map[string]any{required: term("matchLabelKeys")},
			"podAntiAffinity": map[string]any{required: term("mismatchLabelKeys")},
		},
	}}})
	// racks returns the racks of the living replicas, and reports replicas that have several and racks with several.
	racks := func() map[string]string {
		t.Helper()
		found := map[string]string{}
		for _, name := range s.workers("racks", 4) {
			pod, err := lab.Kube.CoreV1().Pods(s.namespace).Get(s.ctx, name, metav1.GetOptions{})
			s.must(err)
			node, err := lab.Kube.CoreV1().Nodes().Get(s.ctx, pod.Spec.NodeName, metav1.GetOptions{})
			s.must(err)
			replica, rack := pod.Labels[replicaName], node.Labels[clique]
			if before, known := found[replica]; replica == "" || rack == "" || known && before != rack {
				t.Errorf("pod %s of replica %q is on %q, the others on %q", name, replica, rack, before)
			}
			found[replica] = rack
		}
		if all := slices.Compact(slices.Sorted(maps.Values(found))); len(found) != 2 || len(all) != 2 {
			t.Errorf("replicas on racks %v, want two with a rack each", found)
		}
		return found
	}

	s.step("two gangs start from zero, each on a rack of its own")
	driver := s.drive()
	tray := map[string]float64{"tray": 1}
	gang := func(id string) rig.Command {
		return rig.Command{Do: "group", ID: id, Topology: domain, Bundles: []map[string]float64{tray, tray}}
	}
	s.do(driver, gang("one"), gang("two"))
	s.placed(driver, "one", 2)
	s.placed(driver, "two", 2)
	before := racks()
	s.quiet("both gangs run")
	s.created("racks", 4)

	s.step("no whole rack is left for a third gang, although a host is")
	s.do(driver, gang("three"))
	s.told("that no rack is left", func(st status) bool {
		return st.unmet("capped") && st.Groups[0].because("pool_ceiling", "no value of node label "+clique+" has room for the 2 hosts of a replica")
	})
	s.do(driver, release("three"))
	s.created("racks", 4)

	s.step("a gang that is larger than any rack launches nothing")
	s.do(driver, rig.Command{Do: "group", ID: "large", Topology: domain, Bundles: []map[string]float64{tray, tray, tray}})
	s.told("that it is capped", func(st status) bool { return st.unmet("capped") })
	s.do(driver, release("large"))
	s.created("racks", 4)

	s.step("a host is lost: its replica goes, and the gang moves to the next one as a whole")
	lost := rig.Living(s.journal.Facts(), "racks")[0]
	pod, err := lab.Kube.CoreV1().Pods(s.namespace).Get(s.ctx, lost, metav1.GetOptions{})
	s.must(err)
	s.must(lab.Kube.CoreV1().Pods(s.namespace).Delete(s.ctx, lost, metav1.DeleteOptions{}))
	s.until("the gang to be placed again", func() bool {
		placed := 0
		for _, e := range driver.Events() {
			if e.Event == "placed" {
				placed++
			}
		}
		return placed == 3
	})
	after := racks()
	for replica, rack := range before {
		if now, lives := after[replica]; lives == (replica == pod.Labels[replicaName]) || lives && now != rack {
			t.Errorf("replica %s was on %s; now there are %v", replica, rack, after)
		}
	}
	s.quiet("both gangs run again")
	s.created("racks", 6)
}
