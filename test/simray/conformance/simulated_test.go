package conformance

import (
	"testing"

	"heliostat.dev/heliostat/test/simray"
	"heliostat.dev/heliostat/test/simray/certs"
)

func TestSimulatedHeadConforms(t *testing.T) {
	for _, version := range []simray.Version{simray.Ray240, simray.Ray252, simray.Ray260} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			head, err := simray.Start(simray.Options{Version: version})
			if err != nil {
				t.Fatal(err)
			}
			defer head.Close()
			Run(t, Simulated{Head: head, Ray: version})
		})
	}
}

func TestSimulatedV1HeadKeepsRequestsInItsKeyValueStore(t *testing.T) {
	for _, version := range []simray.Version{simray.Ray240, simray.Ray252, simray.Ray260} {
		head, err := simray.Start(simray.Options{Version: version, V1: true})
		if err != nil {
			t.Fatal(err)
		}
		defer head.Close()
		h := connect(t, Simulated{Head: head, Ray: version})
		h.RequestResources(t, []res{{"GPU": 1}, {"GPU": 1}}, nil)
		h.demands(t, "at least 2 x {GPU 1}")
		h.RequestResources(t, nil, nil)
		h.demands(t)
	}
}

func TestSimulatedTokenHeadConforms(t *testing.T) {
	for _, version := range []simray.Version{simray.Ray252, simray.Ray260} {
		head, err := simray.Start(simray.Options{Version: version, Token: "token-of-a-test"})
		if err != nil {
			t.Fatal(err)
		}
		defer head.Close()
		RunToken(t, head.Addr(), "token-of-a-test")
	}
}

func TestSimulatedTLSHeadConforms(t *testing.T) {
	authority := certs.NewAuthority(t)
	head, err := simray.Start(simray.Options{Token: "token-of-a-test", TLS: authority.ServerTLS(t, authority.Issue(t, serverName))})
	if err != nil {
		t.Fatal(err)
	}
	defer head.Close()
	RunTLS(t, head.Addr(), "token-of-a-test", authority)
}
