package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// certificateInterval is the pause between readings of the files. They are polled, not watched: the kubelet replaces a
// mounted Secret by changing a symbolic link, and inotify instances are scarce on a busy node.
const certificateInterval = 5 * time.Second

// CertificateFiles are paths of PEM files. Cert has the server's certificate and the intermediate authorities, Key its
// private key, and ClientCA the authorities of client certificates, empty for none.
type CertificateFiles struct{ Cert, Key, ClientCA string }

// ca is the path of the authorities of Cert, which is ca.crt beside it, as in a Secret of cert-manager. The file may be
// missing: not every issuer provides them.
func (f CertificateFiles) ca() string { return filepath.Join(filepath.Dir(f.Cert), "ca.crt") }

// Given reports whether TLS is configured.
func (f CertificateFiles) Given() bool { return f.Cert != "" }

// Validate returns an error if a path is missing.
func (f CertificateFiles) Validate() error {
	switch {
	case (f.Cert == "") != (f.Key == ""):
		return errors.New("a certificate and its key go together: give both files")
	case f.ClientCA != "" && f.Cert == "":
		return errors.New("client certificates need TLS: give the files of a certificate and its key too")
	}
	return nil
}

// Certificates holds the last valid content of the files.
type Certificates struct {
	files CertificateFiles
	log   *slog.Logger
	held  atomic.Pointer[held]
}

// held is one reading of all files. It is immutable.
type held struct {
	texts     [4][]byte
	shown     *tls.Certificate
	clientCAs *x509.CertPool
	roots     *x509.CertPool // nil: the system's
}

// LoadCertificates reads the files, which must be valid at startup.
func LoadCertificates(files CertificateFiles, log *slog.Logger) (*Certificates, error) {
	if err := files.Validate(); err != nil {
		return nil, err
	}
	s := &Certificates{files: files, log: log}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

// Reload reads the files again. If one of them is invalid, all keep their previous content: during a renewal,
// certificate and key may not match for a moment.
func (s *Certificates) Reload() error {
	var next held
	for i, path := range []string{s.files.Cert, s.files.Key, s.files.ClientCA, s.files.ca()} {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if path == s.files.ca() && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading certificates: %w", err)
		}
		next.texts[i] = text
	}
	before := s.held.Load()
	if before != nil && equal(before.texts, next.texts) {
		return nil
	}
	if err := next.parse(s.files); err != nil {
		return err
	}
	s.held.Store(&next)
	s.log.Info("certificates read", "cert", s.files.Cert, "until", next.shown.Leaf.NotAfter)
	return nil
}

func (h *held) parse(files CertificateFiles) error {
	pair, err := tls.X509KeyPair(h.texts[0], h.texts[1])
	if err != nil {
		return fmt.Errorf("reading the certificate %s and its key: %w", files.Cert, err)
	}
	h.shown = &pair
	if h.texts[3] != nil {
		h.roots = x509.NewCertPool()
		if !h.roots.AppendCertsFromPEM(h.texts[3]) {
			return fmt.Errorf("reading the authorities of the certificate %s: the file has no certificate", files.ca())
		}
	}
	if files.ClientCA == "" {
		return nil
	}
	h.clientCAs = x509.NewCertPool()
	if !h.clientCAs.AppendCertsFromPEM(h.texts[2]) {
		return fmt.Errorf("reading the authorities of client certificates %s: the file has no certificate",
			files.ClientCA)
	}
	return nil
}

func equal(a, b [4][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// Run reads the files repeatedly until ctx ends. It logs each new error once.
func (s *Certificates) Run(ctx context.Context) {
	tick := time.NewTicker(certificateInterval)
	defer tick.Stop()
	reported := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		fault := ""
		if err := s.Reload(); err != nil {
			fault = err.Error()
		}
		if fault != "" && fault != reported {
			s.log.Warn("keeping the previous certificates", "error", fault)
		}
		reported = fault
	}
}

// ClientCAs returns the authorities of client certificates; nil for none.
func (s *Certificates) ClientCAs() *x509.CertPool { return s.held.Load().clientCAs }

// TLS returns the configuration of a server: TLS 1.2 or later, HTTP/2 if the client supports it, always with the latest
// certificate. It requests a client certificate if there are authorities for one, and accepts any: the server answers a
// call with an invalid one with a problem document. Sessions are not resumed, so no session outlives the authority that
// admitted it.
func (s *Certificates) TLS() *tls.Config {
	base := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.held.Load().shown, nil },
	}
	if s.files.ClientCA == "" {
		return base
	}
	base.ClientAuth = tls.RequestClientCert
	outer := base.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		config := base.Clone()
		config.ClientCAs = s.ClientCAs() // names them, so that clients know which certificate to send
		return config, nil
	}
	return outer
}

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
