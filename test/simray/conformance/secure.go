package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/simray/certs"
)

// serverName is the name in the certificate of a TLS head. It is the full name of a head Service, as under KubeRay.
const serverName = "conf-head-svc.ml.svc.cluster.local"

// RunToken checks the answers of a head with RAY_AUTH_MODE=token.
func RunToken(t *testing.T, addr, token string) {
	read := func(given string) error {
		t.Helper()
		_, err := readOnce(t,
			gcs.Config{Address: addr, Token: func(context.Context) (string, error) { return given, nil }})
		return err
	}
	if err := read(token); err != nil {
		t.Errorf("the right token: %v", err)
	}
	for _, given := range []string{"", "wrong", "Bearer " + token} {
		if err := read(given); !errors.Is(err, raydemand.ErrAuth) {
			t.Errorf("token %q: %v, want ErrAuth", given, err)
		}
	}
}

// RunTLS checks that, on a head with RAY_USE_TLS=1 and a token, the client reads the state only with both the right
// certificate and the right token. Each error must name the one that is wrong. The authority must have signed the
// head's certificate for serverName.
func RunTLS(t *testing.T, addr, token string, authority certs.Authority) {
	config := func(authority certs.Authority, pair certs.Pair, name string) *tls.Config {
		t.Helper()
		config, err := gcs.LoadTLS(authority.PEM, pair.Cert, pair.Key, name)
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	foreign, ours := certs.NewAuthority(t), authority.Issue(t, "heliostat")
	good := config(authority, ours, serverName)
	without := good.Clone()
	without.Certificates = nil
	tests := []struct {
		name  string
		tls   *tls.Config
		token string
		want  error
		says  string
	}{
		{"certificate and token", good, token, nil, ""},
		{"wrong token", good, "wrong", raydemand.ErrAuth, "InvalidAuthToken"},
		{"no certificate", without, token, raydemand.ErrUnavailable, "certificate"},
		{"certificate of a foreign authority", config(authority, foreign.Issue(t, "heliostat"), serverName), token,
			raydemand.ErrUnavailable, "certificate"},
		{"expired certificate", config(authority, authority.IssueExpired(t, "heliostat"), serverName), token,
			raydemand.ErrUnavailable, "certificate"},
		{"head of a foreign authority", config(foreign, ours, serverName), token, raydemand.ErrUnavailable,
			"unknown authority"},
		{"head of another name", config(authority, ours, "another-head-svc"), token, raydemand.ErrUnavailable,
			"not another-head-svc"},
		{"plain text", nil, token, raydemand.ErrUnavailable, "RAY_USE_TLS=1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			state, err := readOnce(t, gcs.Config{
				Address: addr, TLS: test.tls, Token: func(context.Context) (string, error) { return test.token, nil },
			})
			if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %v that says %q", err, test.want, test.says)
			}
			if err == nil && len(state.Nodes) == 0 {
				t.Error("the state has no node")
			}
			t.Logf("%v", err)
		})
	}
}

// readOnce reads the state over a new connection.
func readOnce(t *testing.T, config gcs.Config) (raydemand.State, error) {
	t.Helper()
	config.Timeout = callTimeout
	client, err := gcs.Dial(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	return client.State(t.Context())
}

// plainHead checks a client with TLS against a head without TLS.
func plainHead(t *testing.T, h head) {
	authority := certs.NewAuthority(t)
	pair := authority.Issue(t, "heliostat")
	config, err := gcs.LoadTLS(authority.PEM, pair.Cert, pair.Key, serverName)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readOnce(t, gcs.Config{Address: h.Addr(), TLS: config}); !errors.Is(err, raydemand.ErrUnavailable) ||
		!strings.Contains(err.Error(), "RAY_USE_TLS=1") {
		t.Errorf("TLS with a head that speaks plain text: %v, want it with its reason", err)
	}
}
