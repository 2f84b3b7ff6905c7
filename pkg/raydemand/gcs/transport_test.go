package gcs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTokenIsSentOnEveryCallAndAskedAgain(t *testing.T) {
	r := headOf(t, "2.60.0", "idle-1")
	tokens := []string{"first", "second\n", "third", "fourth"}
	client := dial(t, r, func(c *Config) {
		c.Token = func(context.Context) (string, error) {
			token := tokens[0]
			tokens = tokens[1:]
			return token, nil
		}
	})
	for range 2 {
		if _, err := client.State(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, c := range r.calls {
		got = append(got, c.header.Get("authorization")...)
	}
	if strings.Join(got, ", ") != "Bearer first, Bearer second, Bearer third" {
		t.Errorf("headers %q", got)
	}
}

func TestUnreadableTokenIsAnAuthErrorThatDoesNotTellIt(t *testing.T) {
	r := headOf(t, "2.60.0", "idle-1")
	for name, token := range map[string]func(context.Context) (string, error){
		"failing":       func(context.Context) (string, error) { return "", errors.New("no such file") },
		"two lines":     func(context.Context) (string, error) { return "hidden\nvalue", nil },
		"not printable": func(context.Context) (string, error) { return "hidden\x00", nil },
	} {
		_, err := dial(t, r, func(c *Config) { c.Token = token }).State(t.Context())
		if !errors.Is(err, raydemand.ErrAuth) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want ErrAuth without the token", name, err)
		}
	}
	if len(r.calls) > 0 {
		t.Errorf("%d calls were sent", len(r.calls))
	}
}

func TestMutualTLSReadsARenewedCertificateOnTheNextHandshake(t *testing.T) {
	ca := newAuthority(t)
	const name = "demo-head-svc.ns.svc.cluster.local"
	serverPair := ca.issue(t, name, 1)
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	server := credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{serverPair.tls(t)}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	r := newReplay(t, grpc.Creds(server))
	r.set("GetClusterResourceState", recordedAnswer(t, "2.60.0", "head-only.GetClusterResourceState.binpb"))
	r.set("InternalKVGet", recordedAnswer(t, "2.60.0", "head-only_autoscaler-v2-enabled.InternalKVGet.binpb"))
	read := func(config *tls.Config) error {
		_, err := dial(t, r, func(c *Config) { c.TLS = config }).State(t.Context())
		return err
	}
	pair := ca.issue(t, "heliostat", 2)
	loaded, err := LoadTLS(ca.pem, pair.cert, pair.key, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := read(loaded); err != nil {
		t.Errorf("with our certificate: %v", err)
	}
	if err := read(nil); !errors.Is(err, raydemand.ErrUnavailable) {
		t.Errorf("without TLS: %v", err)
	}
	wrong := loaded.Clone()
	wrong.ServerName = "another-head"
	if err := read(wrong); !errors.Is(err, raydemand.ErrUnavailable) || !strings.Contains(err.Error(), "another-head") {
		t.Errorf("for another server: %v", err)
	}

	dir := t.TempDir()
	write := func(file string, content []byte) string {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := newAuthority(t).issue(t, "heliostat", 3)
	files, err := FileTLS(write("ca.crt", ca.pem), write("tls.crt", foreign.cert), write("tls.key", foreign.key), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := read(files); err == nil {
		t.Error("a certificate of another authority was accepted")
	}
	write("tls.crt", pair.cert)
	write("tls.key", pair.key)
	if err := read(files); err != nil {
		t.Errorf("after the files were renewed: %v", err)
	}
}

func TestUnusableCertificatesAreTold(t *testing.T) {
	ca := newAuthority(t)
	pair := ca.issue(t, "heliostat", 1)
	if _, err := LoadTLS([]byte("no PEM"), pair.cert, pair.key, ""); err == nil {
		t.Error("a CA without certificate was accepted")
	}
	if _, err := LoadTLS(ca.pem, pair.cert, ca.issue(t, "x", 2).key, ""); err == nil {
		t.Error("a key of another certificate was accepted")
	}
	if _, err := FileTLS("no/ca", "no/cert", "no/key", ""); err == nil {
		t.Error("missing files were accepted")
	}
}

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

type pemPair struct{ cert, key []byte }

func (p pemPair) tls(t *testing.T) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a authority) issue(t *testing.T, name string, serial int64) pemPair {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pemPair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
