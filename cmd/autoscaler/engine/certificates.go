package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// certificates are the last valid certificate of the server, with the intermediate authorities, and its key, from PEM
// files. While the files are invalid, the certificate before stays: during a renewal, certificate and key may not match
// for a moment.
type certificates struct {
	watcher *certwatcher.CertWatcher
	// authorities is the path of the authorities of the certificate, which is ca.crt beside it, as in a Secret of
	// cert-manager. The file may be missing: not every issuer provides them.
	authorities string
}

// loadCertificates reads the files, which must be valid at startup.
func loadCertificates(cert, key string) (*certificates, error) {
	watcher, err := certwatcher.New(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate %s and its key: %w", cert, err)
	}
	c := &certificates{watcher, filepath.Join(filepath.Dir(cert), "ca.crt")}
	_, err = c.roots()
	return c, err
}

// TLS returns the configuration of a server: TLS 1.2 or later, HTTP/2 if the client supports it, always with the latest
// certificate.
func (c *certificates) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: c.watcher.GetCertificate,
	}
}

// roots returns the authorities of the server's certificate, those of the system without a file of them.
func (c *certificates) roots() (*x509.CertPool, error) {
	text, err := os.ReadFile(c.authorities)
	if errors.Is(err, fs.ErrNotExist) {
		return x509.SystemCertPool()
	}
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = errors.New("the file has no certificate")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of the certificate %s: %w", c.authorities, err)
	}
	return pool, nil
}

// Peers returns the configuration for calling another replica at its IP address, which is in no certificate. The other
// replica must have the key of this replica's certificate or, during a renewal, a certificate from the same authorities
// for the same name.
func (c *certificates) Peers() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		// The files change while the server runs, and RootCAs cannot: VerifyConnection does the whole verification.
		InsecureSkipVerify: true,
		VerifyConnection:   c.verifyPeer,
	}
}

func (c *certificates) verifyPeer(peer tls.ConnectionState) error {
	pair, err := c.watcher.GetCertificate(nil)
	if err != nil {
		return err
	}
	own, other := pair.Leaf, peer.PeerCertificates[0] // a server always shows one
	if other.Equal(own) {
		return nil
	}
	if len(own.DNSNames) == 0 {
		return errors.New(
			"the other replica shows a different certificate, and this replica's has no DNS name to check it by")
	}
	roots, err := c.roots()
	if err != nil {
		return err
	}
	between := x509.NewCertPool()
	for _, certificate := range peer.PeerCertificates[1:] {
		between.AddCert(certificate)
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: own.DNSNames[0]}
	if _, err := other.Verify(options); err != nil {
		return fmt.Errorf("the other replica shows a different certificate: %w", err)
	}
	return nil
}
