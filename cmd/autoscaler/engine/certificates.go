package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// certificateFiles are paths of PEM files. Cert has the server's certificate and the intermediate authorities, Key its
// private key, and ClientCA the authorities of client certificates, empty for none.
type certificateFiles struct{ Cert, Key, ClientCA string }

// ca is the path of the authorities of Cert, which is ca.crt beside it, as in a Secret of cert-manager. The file may be
// missing: not every issuer provides them.
func (f certificateFiles) ca() string { return filepath.Join(filepath.Dir(f.Cert), "ca.crt") }

// Given reports whether TLS is configured.
func (f certificateFiles) Given() bool { return f.Cert != "" }

// Validate returns an error if a path is missing.
func (f certificateFiles) Validate() error {
	switch {
	case (f.Cert == "") != (f.Key == ""):
		return errors.New("a certificate and its key go together: give both files")
	case f.ClientCA != "" && f.Cert == "":
		return errors.New("client certificates need TLS: give the files of a certificate and its key too")
	}
	return nil
}

// certificates holds the last valid content of the files. If a file is invalid, its previous content stays: during a
// renewal, certificate and key may not match for a moment.
type certificates struct {
	files   certificateFiles
	serving *dynamiccertificates.DynamicCertKeyPairContent
	clients *dynamiccertificates.DynamicFileCAContent // nil without ClientCA
	server  *dynamiccertificates.DynamicServingCertificateController
}

// loadCertificates reads the files, which must be valid at startup.
func loadCertificates(files certificateFiles) (*certificates, error) {
	if err := files.Validate(); err != nil {
		return nil, err
	}
	s := &certificates{files: files}
	var err error
	s.serving, err = dynamiccertificates.NewDynamicServingContentFromFiles("serving-cert", files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate %s and its key: %w", files.Cert, err)
	}
	if _, err := s.roots(); err != nil {
		return nil, err
	}
	// Sessions are not resumed, so no session outlives the authority that admitted it.
	base := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true,
	}
	var authorities dynamiccertificates.CAContentProvider
	if files.ClientCA != "" {
		s.clients, err = dynamiccertificates.NewDynamicCAContentFromFile("client-ca", files.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("reading the authorities of client certificates %s: %w", files.ClientCA, err)
		}
		base.ClientAuth, authorities = tls.RequestClientCert, s.clients
	}
	s.server = dynamiccertificates.NewDynamicServingCertificateController(base, authorities, s.serving, nil, nil)
	s.serving.AddListener(s.server)
	if s.clients != nil {
		s.clients.AddListener(s.server)
	}
	return s, s.server.RunOnce()
}

// Run reads the files when they change until ctx ends.
func (s *certificates) Run(ctx context.Context) {
	go s.serving.Run(ctx, 1)
	if s.clients != nil {
		go s.clients.Run(ctx, 1)
	}
	s.server.Run(1, ctx.Done())
}

// ClientCAs returns how client certificates are verified, with the latest authorities. Call it with ClientCA only.
func (s *certificates) ClientCAs() (x509.VerifyOptions, bool) { return s.clients.VerifyOptions() }

// TLS returns the configuration of a server: TLS 1.2 or later, HTTP/2 if the client supports it, always with the latest
// certificate. It requests a client certificate if there are authorities for one, and accepts any: the server answers a
// call with an invalid one with a problem document.
func (s *certificates) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: s.server.GetConfigForClient,
	}
}

// roots returns the authorities of the server's certificate; nil, which is the system's, without a file of them.
func (s *certificates) roots() (*x509.CertPool, error) {
	text, err := os.ReadFile(s.files.ca())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = errors.New("the file has no certificate")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of the certificate %s: %w", s.files.ca(), err)
	}
	return pool, nil
}

// Peers returns the configuration for calling another replica at its IP address, which is in no certificate. The other
// replica must have the key of this replica's certificate or, during a renewal, a certificate from the same authorities
// for the same name.
func (s *certificates) Peers() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		// The files change while the server runs, and RootCAs cannot: VerifyConnection does the whole verification.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			return s.verifyPeer(state.PeerCertificates)
		},
	}
}

func (s *certificates) verifyPeer(chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errors.New("the other replica shows no certificate")
	}
	pair, err := tls.X509KeyPair(s.serving.CurrentCertKeyContent())
	if err != nil {
		return err
	}
	own, other := pair.Leaf, chain[0]
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
	roots, err := s.roots()
	if err != nil {
		return err
	}
	between := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	if _, err := other.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: name}); err != nil {
		return fmt.Errorf("the other replica shows a different certificate: %w", err)
	}
	return nil
}
