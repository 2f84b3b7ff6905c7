package conformance

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/simray"
	"heliostat.dev/heliostat/test/simray/certs"
)

// TestRealHeadConforms runs the list against real heads, which are local processes. HELIOSTAT_RAY_VENV_2_60_0 is the
// path of a virtual environment with ray[default] 2.60.0. The other versions have a variable each.
func TestRealHeadConforms(t *testing.T) {
	for _, version := range []simray.Version{simray.Ray240, simray.Ray252, simray.Ray260} {
		t.Run(string(version), func(t *testing.T) {
			Run(t, startReal(t, version))
		})
	}
}

// TestRealTokenHeadConforms runs the list for a head in token mode.
func TestRealTokenHeadConforms(t *testing.T) {
	for _, version := range []simray.Version{simray.Ray252, simray.Ray260} {
		t.Run(string(version), func(t *testing.T) {
			const token = "token-of-a-test-0123456789"
			head := newReal(t, version)
			head.env = append(head.env, "RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN="+token)
			head.startHead(t)
			RunToken(t, head.Addr(), token)
		})
	}
}

// TestRealTLSHeadConforms runs the list for a head with TLS and a token. All of Ray's own processes use TLS too.
func TestRealTLSHeadConforms(t *testing.T) {
	const token = "token-of-a-test-0123456789"
	head := newReal(t, simray.Ray260)
	authority := certs.NewAuthority(t)
	pair := authority.Issue(t, serverName, head.network+".1") // Ray's own clients verify the address
	head.env = append(head.env, "RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN="+token, "RAY_USE_TLS=1",
		"RAY_TLS_CA_CERT="+head.write(t, "ca.crt", authority.PEM),
		"RAY_TLS_SERVER_CERT="+head.write(t, "tls.crt", pair.Cert), "RAY_TLS_SERVER_KEY="+head.write(t, "tls.key", pair.Key))
	head.startHead(t)
	config, err := gcs.LoadTLS(authority.PEM, pair.Cert, pair.Key, serverName)
	if err != nil {
		t.Fatal(err)
	}
	head.waitForNode(t, gcs.Config{Address: head.Addr(), TLS: config, Token: func(context.Context) (string, error) { return token, nil }})
	RunTLS(t, head.Addr(), token, authority)
}

// TestRealV1HeadKeepsRequestsInItsKeyValueStore runs the simulated test of the same name on real heads.
func TestRealV1HeadKeepsRequestsInItsKeyValueStore(t *testing.T) {
	for _, version := range []simray.Version{simray.Ray240, simray.Ray252, simray.Ray260} {
		t.Run(string(version), func(t *testing.T) {
			target := newReal(t, version)
			target.env = append(target.env, "RAY_enable_autoscaler_v2=0")
			target.startHead(t)
			target.waitForRaylet(t)
			target.startDriver(t)
			h := connect(t, target)
			target.RequestResources(t, []res{{"GPU": 1}, {"GPU": 1}}, nil)
			h.demands(t, "at least 2 x {GPU 1}")
			target.RequestResources(t, nil, nil)
			h.demands(t)
		})
	}
}

// TestRealHeadTellsMoreShapesWhenItsLimitIsRaised checks the advice of the finding about truncated demand.
func TestRealHeadTellsMoreShapesWhenItsLimitIsRaised(t *testing.T) {
	target := newReal(t, simray.Ray260)
	target.env = append(target.env, "RAY_max_resource_shapes_per_load_report=1000")
	target.startHead(t)
	target.waitForRaylet(t)
	target.startDriver(t)
	h := connect(t, target)
	target.Do(t, manyShapes())
	h.eventually(t, func() string {
		state, err := h.ours.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return cmp.Diff(150, len(state.Demand.Requests))
	})
}
