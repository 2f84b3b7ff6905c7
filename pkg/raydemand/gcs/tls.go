package gcs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// LoadTLS returns the configuration for a head with RAY_USE_TLS=1, which requires a client certificate. The arguments
// are the CA, the client certificate and its key in PEM, and the name in the head's certificate (under KubeRay, the
// full name of the head Service).
func LoadTLS(caPEM, certPEM, keyPEM []byte, serverName string) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("loading Ray client certificate: %w", err)
	}
	return withRoots(caPEM, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		ServerName: serverName})
}

// withRoots trusts the authorities of a PEM text.
func withRoots(caPEM []byte, config *tls.Config) (*tls.Config, error) {
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(caPEM) {
		return nil, errors.New("loading Ray CA: no certificate in the PEM text")
	}
	return config, nil
}

// FileTLS is like LoadTLS, but reads files. It reads the client certificate again on each handshake, so a renewed
// Secret needs no restart. It reads the CA only once.
func FileTLS(caFile, certFile, keyFile, serverName string) (*tls.Config, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("reading Ray CA: %w", err)
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("reading Ray client certificate: %w", err)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	return withRoots(ca, &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: serverName,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() },
	})
}
