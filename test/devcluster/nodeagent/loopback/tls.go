package loopback

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// ListenTLS listens on a free port with a new self-signed certificate: an API server does not verify the certificate of
// a kubelet unless it has a --kubelet-certificate-authority. If clientCAFile is set, clients need a certificate that
// this authority signed.
func ListenTLS(ip, clientCAFile string) (net.Listener, error) {
	certificate, err := selfSigned(ip)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", ip, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	if clientCAFile != "" {
		pem, err := os.ReadFile(clientCAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate authority: %w", err)
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the client certificate authority: %s has no certificate", clientCAFile)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(ip, "0"), config)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", ip, err)
	}
	return listener, nil
}

func selfSigned(ip string) (tls.Certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "node agent"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.ParseIP(ip)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}
