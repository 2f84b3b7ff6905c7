package doctor_test

import (
	"fmt"
	"slices"
	"testing"
)

// The fixes of two findings about one number would contradict each other.
func TestANumberThatTheOperatorCannotDecodeHasOneFinding(t *testing.T) {
	for _, name := range []string{"replicas", "minReplicas", "maxReplicas"} {
		for _, value := range []float64{-1e308, -1e15, -3e9, 3e9, 1e15, 1e308} {
			t.Run(fmt.Sprint(name, " ", value), func(t *testing.T) {
				cluster := objects(t, "testdata/shows/field-out-of-range.yaml")
				field(t, cluster[0], "/spec/workerGroupSpecs/0/replicas", 1)
				field(t, cluster[0], "/spec/workerGroupSpecs/0/"+name, value)
				codes := codesOf(examine(t, cluster))
				if !slices.Equal(codes, []string{"field-out-of-range"}) {
					t.Errorf("codes %v, want field-out-of-range alone", codes)
				}
			})
		}
	}
}
