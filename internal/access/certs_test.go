package access

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
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

// pair is a self-signed certificate for 127.0.0.1 and for clients, in PEM.
type pair struct{ cert, key []byte }

func newPair(t *testing.T, name string) pair {
	t.Helper()
	return signCertificate(t, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}, nil).pair
}

// issuer has a certificate, and may sign others.
type issuer struct {
	pair
	certificate *x509.Certificate
	signer      *ecdsa.PrivateKey
}

// signCertificate returns a certificate that has been valid for an hour, signed by an issuer, or self-signed if that is
// nil.
func signCertificate(t *testing.T, template *x509.Certificate, by *issuer) *issuer {
	t.Helper()
	template.NotBefore = time.Now().Add(-time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by = &issuer{certificate: template, signer: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	made := pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})}
	return &issuer{made, certificate, key}
}

func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func filesIn(t *testing.T) CertificateFiles {
	dir := t.TempDir()
	return CertificateFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "client-ca.crt")}
}

var quiet = slog.New(slog.DiscardHandler)

func TestARenewedCertificateIsShownWithoutARestart(t *testing.T) {
	files, first, second, third := filesIn(t), newPair(t, "first"), newPair(t, "second"), newPair(t, "third")
	put(t, files.Cert, first.cert)
	put(t, files.Key, first.key)
	put(t, files.ClientCA, first.cert)
	store, err := LoadCertificates(files, quiet)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.Config.TLSConfig = store.TLS()
	listener := server.Listener
	go func() { _ = server.Config.ServeTLS(listener, "", "") }() // ends by Close
	defer server.Config.Close()

	shown := func() string {
		t.Helper()
		connection, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		state := connection.ConnectionState()
		if state.NegotiatedProtocol != "h2" {
			t.Errorf("negotiated %q, want h2", state.NegotiatedProtocol)
		}
		return state.PeerCertificates[0].Subject.CommonName
	}
	if got := shown(); got != "first" {
		t.Fatalf("the server shows %q", got)
	}

	put(t, files.Cert, second.cert) // the key follows a moment later
	if err := store.Reload(); err == nil || !strings.Contains(err.Error(), files.Cert) {
		t.Errorf("a certificate without its key: %v", err)
	}
	if got := shown(); got != "first" {
		t.Errorf("between two writes the server shows %q", got)
	}
	put(t, files.Key, second.key)
	if err := store.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := shown(); got != "second" {
		t.Errorf("after the renewal the server shows %q", got)
	}

	pool := store.ClientCAs()
	put(t, files.ClientCA, third.cert)
	if err := store.Reload(); err != nil || pool.Equal(store.ClientCAs()) {
		t.Errorf("a new authority of clients is not taken: %v", err)
	}
	put(t, files.ClientCA, []byte("nothing"))
	if err := store.Reload(); err == nil || store.ClientCAs() == nil {
		t.Errorf("a file without an authority: %v, %v", err, store.ClientCAs())
	}
	if err := os.Remove(files.Cert); err != nil {
		t.Fatal(err)
	}
	if err := store.Reload(); err == nil || shown() != "second" {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestClientsLearnWhichAuthorityIsAskedForAndMayShowNone(t *testing.T) {
	files, own := filesIn(t), newPair(t, "own")
	put(t, files.Cert, own.cert)
	put(t, files.Key, own.key)
	put(t, files.ClientCA, own.cert)
	store, err := LoadCertificates(files, quiet)
	if err != nil {
		t.Fatal(err)
	}
	held, err := tls.X509KeyPair(own.cert, own.key)
	if err != nil {
		t.Fatal(err)
	}
	for name, show := range map[string]bool{"with one": true, "without one": false} {
		near, far := net.Pipe()
		server := tls.Server(far, store.TLS())
		ended := make(chan error, 1)
		go func() { ended <- server.Handshake() }()
		asked := [][]byte(nil)
		client := tls.Client(near, &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = request.AcceptableCAs
			if show {
				return &held, nil
			}
			return &tls.Certificate{}, nil
		}})
		if err := client.Handshake(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		go func() { _, _ = io.Copy(io.Discard, client) }()
		if err := <-ended; err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(asked) != 1 || !bytes.Contains(asked[0], []byte("own")) {
			t.Errorf("%s: asked for authorities %q", name, asked)
		}
		if got := len(server.ConnectionState().PeerCertificates); (got == 1) != show {
			t.Errorf("%s: %d certificates", name, got)
		}
		near.Close()
	}
}

func TestFilesThatDoNotGoTogetherAreRefused(t *testing.T) {
	for want, files := range map[string]CertificateFiles{
		"go together":      {Cert: "tls.crt"},
		"both files":       {Key: "tls.key"},
		"need TLS":         {ClientCA: "ca.crt"},
		"no/such/file.crt": {Cert: "no/such/file.crt", Key: "no/such/file.key"},
	} {
		if _, err := LoadCertificates(files, quiet); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", files, err, want)
		}
	}
	if err := (CertificateFiles{}).Validate(); err != nil || (CertificateFiles{}).Given() {
		t.Errorf("no files at all: %v", err)
	}
}
