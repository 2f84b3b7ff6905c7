package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// cluster is a fake Kubernetes that knows tokens and rights, counts requests, and fails on request.
type cluster struct {
	mu              sync.Mutex
	callers         map[string]Caller
	allowed         map[string][]string // rights by caller
	tokens, reviews int
	err             error
	hold            chan struct{}        // reviews wait for it
	asked           chan context.Context // receives the context of each review if a test reads it
}

func (c *cluster) ReviewToken(ctx context.Context, token string) (Caller, bool, error) {
	c.mu.Lock()
	c.tokens++
	hold := c.hold
	c.mu.Unlock()
	if c.asked != nil {
		c.asked <- ctx
	}
	if hold != nil {
		<-hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	caller, known := c.callers[token]
	return caller, known, c.err
}

func (c *cluster) ReviewRight(_ context.Context, caller Caller, right Right) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reviews++
	return slices.Contains(c.allowed[caller.Name], right.String()), c.err
}

// change changes what the cluster knows.
func (c *cluster) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// world is a Gate with a clock and a cluster.
type world struct {
	*Gate
	cluster *cluster
	mu      sync.Mutex
	now     time.Time
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := &world{now: noon, cluster: &cluster{
		callers: map[string]Caller{"alices": {Name: "alice", UID: "1", Groups: []string{"users"}}},
		allowed: map[string][]string{"alice": {`get rayclusters.ray.io "llm" in namespace "ml"`}},
	}}
	config := Config{Reviewer: w.cluster, Now: w.clock}
	for _, f := range change {
		f(&config)
	}
	gate, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	w.Gate = gate
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// call returns a request with a token, or without one if it is empty.
func call(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// showing returns a request over TLS with a client certificate.
func showing(r *http.Request, chain ...*x509.Certificate) *http.Request {
	r.TLS = &tls.ConnectionState{PeerCertificates: chain}
	return r
}

// authority signs certificates.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, parent *authority) *authority {
	t.Helper()
	a := &authority{t: t}
	a.certificate, a.key = sign(t, parent, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// client returns a client certificate that is valid for an hour.
func (a *authority) client(name string, groups ...string) *x509.Certificate {
	a.t.Helper()
	certificate, _ := sign(a.t, a, &x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return certificate
}

func sign(t *testing.T, by *authority, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), noon.Add(-time.Hour), noon.Add(time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}
