// Package certs creates certificates for tests that use mutual TLS with a simulated or real Ray head. It creates keys
// on each run, and certificates expire after an hour. They must not be used outside of tests.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority signs certificates. PEM is its own certificate, which is RAY_TLS_CA_CERT in Ray.
type Authority struct {
	PEM  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate for client and server use, and its key. Both are in PEM.
type Pair struct{ Cert, Key []byte }

// NewAuthority creates a self-signed authority.
func NewAuthority(tb testing.TB) Authority {
	tb.Helper()
	template := &x509.Certificate{
		SerialNumber: serial(tb), Subject: pkix.Name{CommonName: "authority of a test"},
		IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	key := newKey(tb)
	der := sign(tb, template, template, key, key)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return Authority{PEM: encode("CERTIFICATE", der), cert: cert, key: key}
}

// Issue signs a valid certificate for names. Each name is a DNS name or an IP address.
func (a Authority) Issue(tb testing.TB, names ...string) Pair {
	tb.Helper()
	return a.issue(tb, time.Now().Add(time.Hour), names)
}

// IssueExpired signs an expired certificate.
func (a Authority) IssueExpired(tb testing.TB, names ...string) Pair {
	tb.Helper()
	return a.issue(tb, time.Now().Add(-time.Minute), names)
}

func (a Authority) issue(tb testing.TB, until time.Time, names []string) Pair {
	tb.Helper()
	template := &x509.Certificate{
		SerialNumber: serial(tb), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: until.Add(-2 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, name)
	}
	key := newKey(tb)
	der := sign(tb, template, a.cert, key, a.key)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return Pair{Cert: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", keyDER)}
}

// ServerTLS returns the configuration of a head with RAY_USE_TLS=1. The head uses pair and requires a client
// certificate that the authority signed.
func (a Authority) ServerTLS(tb testing.TB, pair Pair) *tls.Config {
	tb.Helper()
	shown, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		tb.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{shown},
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

func sign(tb testing.TB, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) []byte {
	tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		tb.Fatal(err)
	}
	return der
}

func serial(tb testing.TB) *big.Int {
	tb.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		tb.Fatal(err)
	}
	return n.Add(n, big.NewInt(1))
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
