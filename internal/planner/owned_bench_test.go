package planner

import (
	"fmt"
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// manyOwners is a cluster of three groups with some workers, and with requests of many owners of which a third fit.
func manyOwners(owners int) Snapshot {
	s := Snapshot{}
	for i, gpus := range []int64{1, 4, 8} {
		shape := raydemand.Bundle{"GPU": raydemand.Whole(gpus), "CPU": raydemand.Whole(8 * gpus)}
		name := fmt.Sprintf("g%d", i)
		s.Groups = append(s.Groups, Group{Name: name, Resources: shape, Max: owners / 12, NumOfHosts: 1})
		for k := range owners / 24 {
			s.Nodes = append(s.Nodes, Node{Pod: fmt.Sprintf("%s-%d", name, k), Group: name, State: Idle, Total: shape, Available: shape})
		}
	}
	for i := range owners {
		s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{
			ID: fmt.Sprintf("r%d", i), Owner: "o", Priority: int32(i % 3), AllOrNothing: i%2 == 0,
			Requests: []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.Whole(int64(1 + i%4))}, Count: int64(1 + i%5)}},
		})
	}
	return s
}

// ownersOfManyShapes gives every owner this many shapes instead of one; distinct ones differ between owners.
func ownersOfManyShapes(owners, shapes int, distinct bool) Snapshot {
	s := manyOwners(owners)
	for i := range s.OwnedRequests {
		of := &s.OwnedRequests[i]
		of.Requests = nil
		for k := range shapes {
			cpu := raydemand.Whole(int64(1 + k))
			if distinct {
				cpu += raydemand.Amount(i)
			}
			of.Requests = append(of.Requests, raydemand.Request{Bundle: raydemand.Bundle{"GPU": raydemand.Whole(int64(1 + k%4)), "CPU": cpu}, Count: int64(1 + (i+k)%3)})
		}
	}
	return s
}

// BenchmarkOwnersOfManyShapes is the same with 20 shapes each.
func BenchmarkOwnersOfManyShapes(b *testing.B) {
	for _, distinct := range []bool{false, true} {
		s := ownersOfManyShapes(1000, 20, distinct)
		b.Run(map[bool]string{false: "shared", true: "distinct"}[distinct], func(b *testing.B) {
			for b.Loop() {
				Compute(s, Policy{})
			}
		})
	}
}

// BenchmarkOwners measures a plan in which a limit prevents serving all owners.
func BenchmarkOwners(b *testing.B) {
	for _, owners := range []int{10, 100, 1000} {
		s := manyOwners(owners)
		b.Run(fmt.Sprint(owners), func(b *testing.B) {
			for b.Loop() {
				Compute(s, Policy{})
			}
		})
	}
}
