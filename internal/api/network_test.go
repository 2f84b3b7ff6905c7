package api

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// wiredServer starts a server of NewServer on a network in memory.
func wiredServer(t *testing.T, change func(*Config)) *memNetwork {
	t.Helper()
	w := newMemNetwork()
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
		ours, theirs := tlsOf(t) // outside the bubble, because it has a real listener
		synctest.Test(t, func(t *testing.T) {
			test(t, "https://127.0.0.1", ours, theirs)
		})
	})
}

// tlsOf returns the TLS settings of both ends for 127.0.0.1.
func tlsOf(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	pool := x509.NewCertPool()
	pool.AddCert(certified.Certificate())
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certified.TLS.Certificates},
		&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
}
