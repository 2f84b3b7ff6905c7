package access

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newIssuer(t *testing.T, name string) *issuer {
	t.Helper()
	return signCertificate(t, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}, nil)
}

// signed returns a certificate for a Service's name, valid until until.
func (i *issuer) signed(t *testing.T, service string, until time.Duration) pair {
	t.Helper()
	return signCertificate(t, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: service}, DNSNames: []string{service},
		NotAfter: time.Now().Add(until), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, i).pair
}

// replica returns a replica whose files have these texts. Without authorities, the file does not exist.
func replica(t *testing.T, shown pair, authorities []byte) *Certificates {
	t.Helper()
	dir := t.TempDir()
	files := CertificateFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	put(t, files.Cert, shown.cert)
	put(t, files.Key, shown.key)
	if authorities != nil {
		put(t, files.ca(), authorities)
	}
	store, err := LoadCertificates(files, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestAReplicaCallsOnlyWhoHasItsOwnCertificateOrARenewalOfIt(t *testing.T) {
	const service = "heliostat.heliostat.svc"
	home, strange := newIssuer(t, "home"), newIssuer(t, "strange")
	own := home.signed(t, service, time.Hour)
	for name, test := range map[string]struct {
		other       pair
		authorities []byte
		refused     string
	}{
		"the same certificate":                       {own, home.cert, ""},
		"the same, of an authority that is not told": {own, nil, ""},
		"a renewed one":                              {home.signed(t, service, time.Hour), home.cert, ""},
		"a renewed one, without the authority":       {home.signed(t, service, time.Hour), nil, "shows a different certificate"},
		"one for another Service":                    {home.signed(t, "metrics.other.svc", time.Hour), home.cert, "not " + service},
		"one of another authority for the same name": {strange.signed(t, service, time.Hour), home.cert, "unknown authority"},
		"one that expired":                           {home.signed(t, service, -time.Minute), home.cert, "expired"},
		"a certificate that names itself its issuer": {newPair(t, service), home.cert, "shows a different certificate"},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		leader := &http.Server{TLSConfig: replica(t, test.other, home.cert).TLS(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
		go func() { _ = leader.ServeTLS(listener, "", "") }() // ends by Close
		transport := &http.Transport{TLSClientConfig: replica(t, own, test.authorities).Peers(), ForceAttemptHTTP2: true}
		response, err := (&http.Client{Transport: transport}).Get("https://" + listener.Addr().String())
		if err == nil {
			response.Body.Close()
		}
		if test.refused == "" && err != nil || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%s: %v, want %q", name, err, test.refused)
		}
		transport.CloseIdleConnections()
		leader.Close()
	}
}

func TestAuthoritiesThatComeLaterCount(t *testing.T) {
	const service = "heliostat.heliostat.svc"
	home := newIssuer(t, "home")
	store := replica(t, home.signed(t, service, time.Hour), nil)
	renewed := replica(t, home.signed(t, service, time.Hour), nil).held.Load().shown.Leaf
	if err := store.held.Load().verifyPeer([]*x509.Certificate{renewed}); err == nil {
		t.Fatal("taken without an authority")
	}
	put(t, store.files.ca(), home.cert)
	if err := store.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := store.held.Load().verifyPeer([]*x509.Certificate{renewed}); err != nil {
		t.Error(err)
	}
	put(t, store.files.ca(), []byte("nothing"))
	if err := store.Reload(); err == nil || !strings.Contains(err.Error(), "the file has no certificate") {
		t.Errorf("a file without a certificate: %v", err)
	}
	if err := os.Remove(store.files.ca()); err != nil {
		t.Fatal(err)
	}
	if err := store.Reload(); err != nil {
		t.Error(err)
	}
}
