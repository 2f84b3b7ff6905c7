package engine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pair is a certificate with its key, in PEM.
type pair struct{ cert, key []byte }

func (i *issuer) pair(t *testing.T) pair {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(i.key)
	must(t, err)
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.certificate.Raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})}
}

// newPair is a self-signed certificate for 127.0.0.1.
func newPair(t *testing.T, name string) pair {
	t.Helper()
	return sign(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}).pair(t)
}

func put(t *testing.T, path string, text []byte) {
	t.Helper()
	must(t, os.WriteFile(path, text, 0o600))
}

func TestARenewedCertificateIsShownWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	first, second := newPair(t, "first"), newPair(t, "second")
	put(t, cert, first.cert)
	put(t, key, first.key)
	store, err := loadCertificates(cert, key)
	must(t, err)
	running := make(chan error, 1)
	go func() { running <- store.watcher.Start(t.Context()) }()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.Config.TLSConfig = store.TLS()
	listener := server.Listener
	go func() { _ = server.Config.ServeTLS(listener, "", "") }() // ends by Close
	defer server.Config.Close()

	// until waits until the server shows the certificate of that name.
	until := func(when, want string) {
		t.Helper()
		for range 200 {
			connection, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			must(t, err)
			state := connection.ConnectionState()
			connection.Close()
			if state.NegotiatedProtocol == "h2" && state.PeerCertificates[0].Subject.CommonName == want {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("%s the server does not show %q", when, want)
	}
	until("at first", "first")
	put(t, cert, second.cert) // the key follows a moment later
	time.Sleep(100 * time.Millisecond)
	until("between two writes", "first")
	put(t, key, second.key)
	until("after the renewal", "second")
	must(t, os.Remove(cert))
	time.Sleep(100 * time.Millisecond)
	until("with a file that is gone", "second")
	select {
	case err := <-running:
		t.Errorf("files are not read any more: %v", err)
	default:
	}
	if _, err := loadCertificates("no/such/file.crt", key); err == nil || !strings.Contains(err.Error(), "no/such/file.crt") {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// issuer signs certificates.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// sign returns a certificate that has been valid for an hour, signed by an issuer, or self-signed without one.
func sign(t *testing.T, by *issuer, template *x509.Certificate) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template.SerialNumber, template.NotBefore = big.NewInt(1), time.Now().Add(-2*time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	if by == nil {
		by = &issuer{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return &issuer{certificate, key}
}

func newIssuer(t *testing.T, name string) *issuer {
	t.Helper()
	return sign(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
}

// signed returns a certificate for a Service's name, valid until until.
func (i *issuer) signed(t *testing.T, service string, until time.Duration) pair {
	t.Helper()
	return sign(t, i, &x509.Certificate{
		Subject: pkix.Name{CommonName: service}, DNSNames: []string{service},
		NotAfter: time.Now().Add(until), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}).pair(t)
}

// replica returns a replica whose files have these texts. Without authorities, the file does not exist.
func replica(t *testing.T, shown pair, authorities []byte) *certificates {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	put(t, cert, shown.cert)
	put(t, key, shown.key)
	if authorities != nil {
		put(t, filepath.Join(dir, "ca.crt"), authorities)
	}
	store, err := loadCertificates(cert, key)
	must(t, err)
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
		"the same certificate":                       {own, home.pair(t).cert, ""},
		"the same, of an authority that is not told": {own, nil, ""},
		"a renewed one":                              {home.signed(t, service, time.Hour), home.pair(t).cert, ""},
		"a renewed one, without the authority":       {home.signed(t, service, time.Hour), nil, "shows a different certificate"},
		"one for another Service":                    {home.signed(t, "metrics.other.svc", time.Hour), home.pair(t).cert, "not " + service},
		"one of another authority for the same name": {strange.signed(t, service, time.Hour), home.pair(t).cert, "unknown authority"},
		"one that expired":                           {home.signed(t, service, -time.Minute), home.pair(t).cert, "expired"},
		"a certificate that names itself its issuer": {newPair(t, service), home.pair(t).cert, "shows a different certificate"},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		leader := &http.Server{TLSConfig: replica(t, test.other, home.pair(t).cert).TLS(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
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
	other, err := replica(t, home.signed(t, service, time.Hour), nil).watcher.GetCertificate(nil)
	must(t, err)
	renewed := tls.ConnectionState{PeerCertificates: []*x509.Certificate{other.Leaf}}
	if err := store.verifyPeer(renewed); err == nil {
		t.Fatal("taken without an authority")
	}
	put(t, store.authorities, home.pair(t).cert)
	if err := store.verifyPeer(renewed); err != nil {
		t.Error(err)
	}
	put(t, store.authorities, []byte("nothing"))
	if err := store.verifyPeer(renewed); err == nil || !strings.Contains(err.Error(), "the file has no certificate") {
		t.Errorf("a file without a certificate: %v", err)
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
