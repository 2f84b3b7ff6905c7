package raydemand

import "testing"

func TestBundleFits(t *testing.T) {
	node := Bundle{CPU: 2 * One, GPU: One}
	for _, test := range []struct {
		name string
		want Bundle
		fits bool
	}{
		{"nothing fits anywhere", Bundle{}, true},
		{"exactly everything", Bundle{CPU: 2 * One, GPU: One}, true},
		{"one ten-thousandth too much", Bundle{GPU: One + 1}, false},
		{"an unknown resource", Bundle{"TPU": 1}, false},
		{"a zero amount of an unknown resource", Bundle{"TPU": 0}, true},
		{"an implicit resource that no node announces", Bundle{ImplicitPrefix + "a": One}, true},
		{"more than one of an implicit resource", Bundle{ImplicitPrefix + "a": One + 1}, false},
	} {
		if got := node.Fits(test.want); got != test.fits {
			t.Errorf("%s: %v fits %v = %v", test.name, node, test.want, got)
		}
	}
}

func TestTakingAnImplicitResourceUsesItUp(t *testing.T) {
	node := Bundle{CPU: One}
	half := Bundle{ImplicitPrefix + "a": One / 2}
	for range 2 {
		if !node.Fits(half) {
			t.Fatalf("%v does not fit in %v", half, node)
		}
		node.Take(half)
	}
	if node.Fits(half) {
		t.Errorf("a third half fits in %v", node)
	}
}

func TestBundleEqualityIgnoresZeroAmounts(t *testing.T) {
	a, b := Bundle{CPU: One, GPU: 0}, Bundle{CPU: One}
	if !a.Equal(b) || !b.Equal(a) {
		t.Errorf("%v and %v differ", a, b)
	}
	if a.Equal(Bundle{CPU: One, GPU: 1}) || (Bundle{}).Equal(b) {
		t.Error("unequal bundles are equal")
	}
	if !(Bundle{CPU: 0}).IsZero() || b.IsZero() {
		t.Error("IsZero is wrong")
	}
}
