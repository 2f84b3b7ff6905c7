package engine

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
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

func filesIn(t *testing.T) certificateFiles {
	dir := t.TempDir()
	return certificateFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "client-ca.crt")}
}

func TestARenewedCertificateIsShownWithoutARestart(t *testing.T) {
	files, first, second, third := filesIn(t), newPair(t, "first"), newPair(t, "second"), newPair(t, "third")
	put(t, files.Cert, first.cert)
	put(t, files.Key, first.key)
	put(t, files.ClientCA, first.cert)
	store, err := loadCertificates(files)
	must(t, err)
	go store.Run(t.Context())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.Config.TLSConfig = store.TLS()
	listener := server.Listener
	go func() { _ = server.Config.ServeTLS(listener, "", "") }() // ends by Close
	defer server.Config.Close()

	// shown returns the name in the certificate that the server shows, and those of the authorities that it asks for.
	shown := func() string {
		t.Helper()
		var asked [][]byte
		connection, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{
			InsecureSkipVerify: true, NextProtos: []string{"h2"},
			GetClientCertificate: func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
				asked = request.AcceptableCAs
				return &tls.Certificate{}, nil
			},
		})
		must(t, err)
		defer connection.Close()
		state := connection.ConnectionState()
		if state.NegotiatedProtocol != "h2" {
			t.Errorf("negotiated %q, want h2", state.NegotiatedProtocol)
		}
		names := state.PeerCertificates[0].Subject.CommonName
		for _, authority := range asked {
			names += " " + string(authority[len(authority)-5:])
		}
		return names
	}
	until := func(when, want string) {
		t.Helper()
		got := shown()
		for range 200 {
			if got == want {
				return
			}
			time.Sleep(50 * time.Millisecond)
			got = shown()
		}
		t.Fatalf("%s the server shows %q, want %q", when, got, want)
	}
	until("at first", "first first")
	put(t, files.Cert, second.cert) // the key follows a moment later
	time.Sleep(100 * time.Millisecond)
	until("between two writes", "first first")
	put(t, files.Key, second.key)
	until("after the renewal", "second first")
	put(t, files.ClientCA, third.cert)
	until("with a new authority of clients", "second third")
	put(t, files.ClientCA, []byte("nothing"))
	must(t, os.Remove(files.Cert))
	time.Sleep(100 * time.Millisecond)
	until("with files that are gone or invalid", "second third")
}

func TestFilesThatDoNotGoTogetherAreRefused(t *testing.T) {
	for want, files := range map[string]certificateFiles{
		"go together":      {Cert: "tls.crt"},
		"both files":       {Key: "tls.key"},
		"need TLS":         {ClientCA: "ca.crt"},
		"no/such/file.crt": {Cert: "no/such/file.crt", Key: "no/such/file.key"},
	} {
		if _, err := loadCertificates(files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", files, err, want)
		}
	}
	if err := (certificateFiles{}).Validate(); err != nil || (certificateFiles{}).Given() {
		t.Errorf("no files at all: %v", err)
	}
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
	files := certificateFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	put(t, files.Cert, shown.cert)
	put(t, files.Key, shown.key)
	if authorities != nil {
		put(t, files.ca(), authorities)
	}
	store, err := loadCertificates(files)
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
	other, err := tls.X509KeyPair(replica(t, home.signed(t, service, time.Hour), nil).serving.CurrentCertKeyContent())
	must(t, err)
	renewed := []*x509.Certificate{other.Leaf}
	if err := store.verifyPeer(renewed); err == nil {
		t.Fatal("taken without an authority")
	}
	put(t, store.files.ca(), home.pair(t).cert)
	if err := store.verifyPeer(renewed); err != nil {
		t.Error(err)
	}
	put(t, store.files.ca(), []byte("nothing"))
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
