package api

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestTheFilterReviewsEachNamespaceOnce(t *testing.T) {
	reviews := map[string]int{}
	review := func(namespaces []string) (bool, map[string]bool, error) {
		visible := map[string]bool{}
		for _, namespace := range namespaces {
			reviews[namespace]++
			visible[namespace] = namespace == "ml"
		}
		return false, visible, nil
	}
	none := busy()
	none.Cluster.Namespace = "other"
	f, err := newNamespaceFilter(&oneCluster{view: none}, review)
	if err != nil {
		t.Fatal(err)
	}
	for round, want := range [][]string{{"ml"}, nil, nil} {
		for namespace, visible := range map[string]bool{"ml": round > 0, "hidden": false} {
			if got := f.includes(nodepool.ClusterKey{Namespace: namespace, Name: "llm"}); got != visible {
				t.Errorf("round %d: includes %s: %t, want %t", round, namespace, got, visible)
			}
		}
		if waits := len(f.unknown) > 0; waits != (round == 0) {
			t.Errorf("round %d: a namespace waits for review: %t", round, waits)
		}
		gained, err := f.review(false)
		if got := slices.Sorted(maps.Keys(gained)); err != nil || !slices.Equal(got, want) {
			t.Errorf("round %d: gained %v, %v; want %v", round, got, err, want)
		}
		select {
		case <-f.unknown:
		default:
		}
	}
	if reviews["ml"] != 1 || reviews["hidden"] != 1 {
		t.Errorf("reviews: %v", reviews)
	}
	f.ask = func([]string) (bool, map[string]bool, error) { return false, nil, errors.New("connection refused") }
	f.includes(nodepool.ClusterKey{Namespace: "new", Name: "llm"})
	if gained, err := f.review(false); err == nil || len(gained) > 0 || !f.includes(busyKey) {
		t.Errorf("a failed review: %v gained, %v", gained, err)
	}
}
