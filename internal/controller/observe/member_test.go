package observe

import (
	"slices"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAnAddressIsNoProofOfWhoIsThere(t *testing.T) {
	pod := func(name, ip string) nodepool.Worker {
		return nodepool.Worker{Pod: name, Group: "gpu", IP: ip}
	}
	node := func(instance, ip string, status raydemand.NodeStatus) raydemand.Node {
		return raydemand.Node{Instance: instance, IP: ip, Status: status}
	}
	for name, c := range map[string]struct {
		workers []nodepool.Worker
		node    raydemand.Node
		strange bool
	}{
		"two pods share the host's address": {
			[]nodepool.Worker{pod("a", "10.0.0.9"), pod("b", "10.0.0.9")}, node("", "10.0.0.9", raydemand.Running), true},
		"a dead node of a pod that had the address before": {
			[]nodepool.Worker{pod("a", "10.0.0.9")}, node("gone", "10.0.0.9", raydemand.Dead), false},
		"a pod without an address yet": {
			[]nodepool.Worker{pod("a", "")}, node("", "", raydemand.Running), true},
	} {
		members, orphans := join(c.workers, []raydemand.Node{c.node})
		joined := slices.ContainsFunc(members, func(m Member) bool { return m.Node != nil })
		if joined || (len(orphans) > 0) != c.strange {
			t.Errorf("%s: joined %v, orphans %v", name, members, orphans)
		}
	}
}
