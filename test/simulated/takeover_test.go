package simulated

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

// TestTheRayClustersOfAKilledShardAreScaledByTheOther kills one of two processes that divide RayClusters. All that the
// test asserts is in the API server: the Leases, the shard that wrote last, and replicas.
func TestTheRayClustersOfAKilledShardAreScaledByTheOther(t *testing.T) {
	t.Parallel()
	rig.Quiet()
	s := &division{lab: &lab{T: t, namespace: "ml"}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	s.Rig, err = rig.Start(ctx, rig.Options{Out: os.Stderr, ControlPlaneOnly: true})
	s.must(err)
	t.Cleanup(func() { s.must(s.Stop(context.Background())) })
	var processes []*rig.Heliostat
	for range 2 {
		process, err := s.Serve(t.Context(), "--namespaces", s.namespace, "--shards")
		s.must(err)
		t.Cleanup(process.Kill)
		processes = append(processes, process)
	}
	s.await("a Lease of each shard", func() bool { return len(s.leases()) == 2 })
	members := s.leases()

	// Chance decides which shard gets a RayCluster, so there are as many as it takes.
	before := map[string]string{}
	for least := 0; least < 2 || len(before) < 6; {
		if len(before) == 60 {
			t.Fatalf("of 60 RayClusters, one of %v has %d: %v", members, least, before)
		}
		name := s.add()
		s.ask(name, 1)
		s.await("the first replica of "+name, func() bool { return s.replicasOf(name) == 1 })
		before[name] = s.shardOf(name)
		least = min(owned(before, members[0]), owned(before, members[1]))
	}

	processes[0].Kill()
	for name := range before {
		s.ask(name, 2)
	}
	s.await("the Lease of the killed shard to be gone", func() bool { return len(s.leases()) == 1 })
	survivor := s.leases()[0]
	if !slices.Contains(members, survivor) {
		t.Fatalf("shard %s is left, want one of %v", survivor, members)
	}
	for name := range before {
		s.await("the second replica of "+name, func() bool { return s.replicasOf(name) == 2 })
		if shard := s.shardOf(name); shard != survivor {
			t.Errorf("%s was scaled by shard %s, and before by %s; want %s", name, shard, before[name], survivor)
		}
	}
	t.Logf("of %d RayClusters, %d moved to %s", len(before), len(before)-owned(before, survivor), survivor)
}

// division is RayClusters with a simulated head each.
type division struct {
	*lab
	heads map[string]*simray.Head
}

// add creates a RayCluster with its head, and returns its name.
func (s *division) add() string {
	s.Helper()
	if s.heads == nil {
		s.heads = map[string]*simray.Head{}
	}
	ip := fmt.Sprintf("127.78.%d.1", len(s.heads)+1)
	one := &lab{T: s.T, Rig: s.Rig, namespace: s.namespace, name: fmt.Sprint("c", len(s.heads)), headIP: ip}
	head, err := simray.Start(simray.Options{Address: ip + ":6379", Head: simray.Node{Instance: one.name + "-head", IP: ip}})
	s.must(err)
	s.Cleanup(head.Close)
	s.heads[one.name] = head
	one.create(0, rig.Group{Name: "cpu", Max: 9})
	return one.name
}

// ask requests so many workers of one CPU.
func (s *division) ask(name string, cpus int64) {
	s.heads[name].RequestResources([]raydemand.Request{{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: cpus}})
}

func (s *division) replicasOf(name string) int64 {
	s.Helper()
	return (&lab{T: s.T, Rig: s.Rig, namespace: s.namespace, name: name}).replicas()
}

// shardOf returns the shard that wrote a RayCluster last.
func (s *division) shardOf(name string) string {
	s.Helper()
	object := (&lab{T: s.T, Rig: s.Rig, namespace: s.namespace, name: name}).cluster()
	term := object.GetAnnotations()[decode.ShardAnnotation]
	shard, _, named := strings.Cut(term, ".")
	if !named {
		s.Fatalf("%s has term %q, want one of a shard", name, term)
	}
	return shard
}

// leases returns the names of the shards with a Lease in their own name, sorted.
func (s *division) leases() (names []string) {
	s.Helper()
	list, err := s.Kube.CoordinationV1().Leases(metav1.NamespaceDefault).List(s.Context(),
		metav1.ListOptions{LabelSelector: kube.ShardsLabel})
	s.must(err)
	for _, l := range list.Items {
		if !strings.Contains(l.Name, "-slot-") {
			names = append(names, l.Name)
		}
	}
	slices.Sort(names)
	return names
}

// owned counts the RayClusters of a shard.
func owned(by map[string]string, shard string) (n int) {
	for owner := range maps.Values(by) {
		if owner == shard {
			n++
		}
	}
	return n
}
