package httpapi

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"
	"testing/synctest"

	"heliostat.dev/heliostat/internal/httpapi/memnet"
	"heliostat.dev/heliostat/internal/simray/certs"
)

// wiredServer starts a server of NewServer on a network in memory.
func wiredServer(t *testing.T, change func(*Config)) *memnet.Network {
	t.Helper()
	w := memnet.New()
	config := Config{Access: &fakeAccess{}, Fleet: fakeFleet{}, Requests: newFixture(t).requests}
	change(&config)
	running, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	w.Serve(t, running)
	return w
}

// aliceGets makes a call with alice's token, which may return a stream.
func aliceGets(t *testing.T, through http.RoundTripper, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer alice")
	response, err := (&http.Client{Transport: through}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// bothWays runs a test in a synctest bubble twice: over HTTP/1.1, and over TLS with HTTP/2. The test gets the address
// and the TLS settings of both ends, which are nil without TLS.
func bothWays(t *testing.T, test func(t *testing.T, url string, ours, theirs *tls.Config)) {
	t.Run("in the clear", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, "http://127.0.0.1", nil, nil) })
	})
	t.Run("over TLS", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := tlsOf(t)
			test(t, "https://127.0.0.1", ours, theirs)
		})
	})
}

// tlsOf returns the TLS settings of both ends for 127.0.0.1.
func tlsOf(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	authority := certs.NewAuthority(t)
	server = authority.ServerTLS(t, authority.Issue(t, "127.0.0.1"))
	server.ClientAuth = tls.NoClientCert
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.PEM)
	return server, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
}
