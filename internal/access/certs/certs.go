// Package certs reads a server's certificates, and the authorities of its callers' client certificates, from files. It
// reads the files again while the server runs. It must not decide whether a client certificate is accepted: package
// access does.
package certs

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
	"sync/atomic"
	"time"
)

// Interval is the pause between readings of the files. They are polled and not watched: a mounted Secret is replaced by
// turning a symbolic link, and inotify's instances are few on a busy node.
const Interval = 5 * time.Second

// Files are paths of PEM files. Cert holds the server's certificate and the authorities between, Key its private key;
// ClientCA the authorities of client certificates, empty for none. CA holds the authorities of Cert; it may be empty,
// and the file need not be there: not every issuer tells them.
type Files struct{ Cert, Key, ClientCA, CA string }

// Given reports whether TLS is served.
func (f Files) Given() bool { return f.Cert != "" }

// Validate says which path is missing.
func (f Files) Validate() error {
	switch {
	case (f.Cert == "") != (f.Key == ""):
		return errors.New("a certificate and its key go together: give both files")
	case f.ClientCA != "" && f.Cert == "":
		return errors.New("client certificates need TLS: give the files of a certificate and its key too")
	}
	return nil
}

// Store holds what the files had when they were last right.
type Store struct {
	files Files
	log   *slog.Logger
	held  atomic.Pointer[held]
}

// held is one reading of all files. Nobody changes it.
type held struct {
	texts     [4][]byte
	shown     *tls.Certificate
	clientCAs *x509.CertPool
	roots     *x509.CertPool // nil: those of the system
}

// Load reads the files, which must be right at the start.
func Load(files Files, log *slog.Logger) (*Store, error) {
	if err := files.Validate(); err != nil {
		return nil, err
	}
	s := &Store{files: files, log: log}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

// Reload reads the files again. Where one is not right, all stay as they were: during a renewal a certificate and a key
// may not fit each other for a moment.
func (s *Store) Reload() error {
	var next held
	for i, path := range []string{s.files.Cert, s.files.Key, s.files.ClientCA, s.files.CA} {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if path == s.files.CA && errors.Is(err, fs.ErrNotExist) {
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

func (h *held) parse(files Files) error {
	pair, err := tls.X509KeyPair(h.texts[0], h.texts[1])
	if err != nil {
		return fmt.Errorf("reading the certificate %s and its key: %w", files.Cert, err)
	}
	h.shown = &pair
	if h.texts[3] != nil {
		h.roots = x509.NewCertPool()
		if !h.roots.AppendCertsFromPEM(h.texts[3]) {
			return fmt.Errorf("reading the authorities of the certificate %s: there is no certificate in it", files.CA)
		}
	}
	if files.ClientCA == "" {
		return nil
	}
	h.clientCAs = x509.NewCertPool()
	if !h.clientCAs.AppendCertsFromPEM(h.texts[2]) {
		return fmt.Errorf("reading the authorities of client certificates %s: there is no certificate in it",
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

// Run reads the files again and again until ctx ends. What is wrong with them is logged once for each new fault.
func (s *Store) Run(ctx context.Context) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	told := ""
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
		if fault != "" && fault != told {
			s.log.Warn("the certificates stay as they were", "error", fault)
		}
		told = fault
	}
}

// ClientCAs returns the authorities of client certificates; nil for none.
func (s *Store) ClientCAs() *x509.CertPool { return s.held.Load().clientCAs }

// TLS is how a server serves: TLS 1.2 at least, HTTP/2 where the client can, always with the newest certificate. It
// asks for a client certificate where there are authorities for one, and takes any: a call with a wrong one is
// answered, with a problem document. Sessions are not resumed, so no old session outlives the authority that let it in.
func (s *Store) TLS() *tls.Config {
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
		config.ClientCAs = s.ClientCAs() // names them, so that clients know which certificate to show
		return config, nil
	}
	return outer
}
