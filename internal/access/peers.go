package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Peers returns the configuration for calling another replica at its IP address, which is in no certificate. The other
// replica must have the key of this replica's certificate or, during a renewal, a certificate from the same authorities
// for the same name.
func (s *Certificates) Peers() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		// The files change while the server runs, and RootCAs cannot: VerifyConnection does the whole verification.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			return s.held.Load().verifyPeer(state.PeerCertificates)
		},
	}
}

func (h *held) verifyPeer(chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errors.New("the other replica shows no certificate")
	}
	own, other := h.shown.Leaf, chain[0]
	if other.Equal(own) {
		return nil
	}
	name := ""
	switch {
	case len(own.DNSNames) > 0:
		name = own.DNSNames[0]
	case len(own.IPAddresses) > 0:
		name = own.IPAddresses[0].String()
	default:
		return errors.New(
			"the other replica shows a different certificate, and this replica's has no name to check it by")
	}
	between := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	if _, err := other.Verify(x509.VerifyOptions{Roots: h.roots, Intermediates: between, DNSName: name}); err != nil {
		return fmt.Errorf("the other replica shows a different certificate: %w", err)
	}
	return nil
}
