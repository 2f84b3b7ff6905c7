package cli

import "testing"

func TestAnEmptyNamespaceNamesThoseThatAreNot(t *testing.T) {
	for want, c := range map[string]struct {
		namespace string
		others    []string
	}{
		"there is no RayCluster in namespace ml, and in no other":                                                    {"ml", nil},
		"there is no RayCluster in namespace x; there are RayClusters in ml":                                         {"x", []string{"ml"}},
		"there is no RayCluster in namespace traning; there are RayClusters in ml, training; did you mean training?": {"traning", []string{"ml", "training"}},
		"there is no RayCluster in namespace zzzzz; there are RayClusters in a1, b1, c1, d1, e1 and 2 more":          {"zzzzz", []string{"a1", "b1", "c1", "d1", "e1", "f1", "g1"}},
	} {
		if got := emptyNamespace(c.namespace, c.others); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
