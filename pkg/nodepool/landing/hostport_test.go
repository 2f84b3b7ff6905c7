package landing_test

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

func TestPodsThatTakeOnePortShareNoNode(t *testing.T) {
	taking := func(ports ...landing.HostPort) *landing.Neighbors { return &landing.Neighbors{HostPorts: ports} }
	one := taking(landing.HostPort{Port: 80})
	for _, test := range []struct {
		name  string
		other *landing.Neighbors
		want  bool
	}{
		{"no port", taking(), false},
		{"another port", taking(landing.HostPort{Port: 81}), false},
		{"the same one among others", taking(landing.HostPort{Port: 81}, landing.HostPort{Port: 80, Protocol: "TCP", IP: "0.0.0.0"}), true},
		{"of another protocol", taking(landing.HostPort{Port: 80, Protocol: "UDP"}), false},
		{"on one address", taking(landing.HostPort{Port: 80, IP: "10.0.0.1"}), true},
	} {
		if got := one.Refuses(test.other); got != test.want || test.other.Refuses(one) != test.want {
			t.Errorf("%s: shares a port: %t, want %t in both directions", test.name, got, test.want)
		}
	}
	if taking(landing.HostPort{Port: 80, IP: "10.0.0.1"}).Refuses(taking(landing.HostPort{Port: 80, IP: "10.0.0.2"})) {
		t.Error("ports on two addresses are not the same")
	}
}
