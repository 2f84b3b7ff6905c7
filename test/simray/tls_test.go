package simray_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/simray"
	"heliostat.dev/heliostat/test/simray/certs"
)

const tlsName = "demo-head-svc.ns.svc.cluster.local"

func tlsHead(t *testing.T, authority certs.Authority) *simray.Head {
	t.Helper()
	head, err := simray.Start(simray.Options{TLS: authority.ServerTLS(t, authority.Issue(t, tlsName))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(head.Close)
	return head
}

func loadTLS(t *testing.T, authority certs.Authority, pair certs.Pair, name string) *tls.Config {
	t.Helper()
	config, err := gcs.LoadTLS(authority.PEM, pair.Cert, pair.Key, name)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestFailedTLSSaysWhoIsNotTrusted(t *testing.T) {
	authority, foreign := certs.NewAuthority(t), certs.NewAuthority(t)
	pair := authority.Issue(t, "heliostat")
	good := loadTLS(t, authority, pair, tlsName)
	without := good.Clone()
	without.Certificates = nil
	head := tlsHead(t, authority)
	for name, test := range map[string]struct {
		tls  *tls.Config
		says string
	}{
		"our certificate":            {good, ""},
		"none":                       {without, "certificate"},
		"an expired one":             {loadTLS(t, authority, authority.IssueExpired(t, "heliostat"), tlsName), "certificate"},
		"a head of another name":     {loadTLS(t, authority, pair, "another-head"), "not another-head"},
		"a head of a foreign signer": {loadTLS(t, foreign, pair, tlsName), "unknown authority"},
		"plain text":                 {nil, "RAY_USE_TLS=1"},
	} {
		_, err := readFrom(t, head.Addr(), test.tls, 20*time.Second)
		if (err == nil) != (test.says == "") || err != nil && (!errors.Is(err, raydemand.ErrUnavailable) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v, want ErrUnavailable that says %q", name, err, test.says)
		}
	}
}

func TestTLSHeadThatGoesAwayIsUnavailable(t *testing.T) {
	authority := certs.NewAuthority(t)
	config := loadTLS(t, authority, authority.Issue(t, "heliostat"), tlsName)
	silent := serveTCP(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	if _, err := readFrom(t, silent, config, 200*time.Millisecond); !errors.Is(err, raydemand.ErrUnavailable) {
		t.Errorf("a head that never answers the handshake: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(authority.ServerTLS(t, authority.Issue(t, tlsName)))))
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	client, err := gcs.Dial(gcs.Config{Address: listener.Addr().String(), TLS: config, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if _, err := client.State(t.Context()); !errors.Is(err, raydemand.ErrUnsupported) {
		t.Errorf("State of a server without services: %v", err)
	}
	server.Stop()
	served.Wait()
	if _, err := client.State(t.Context()); !errors.Is(err, raydemand.ErrUnavailable) {
		t.Errorf("after the head has gone: %v", err)
	}
}

// serveTCP handles one connection at a time. It closes a connection when handle returns, or when the test ends.
func serveTCP(t *testing.T, handle func(net.Conn)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			handle(conn)
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = listener.Close(); served.Wait() })
	return listener.Addr().String()
}

func readFrom(t *testing.T, addr string, config *tls.Config, timeout time.Duration) (raydemand.State, error) {
	t.Helper()
	client, err := gcs.Dial(gcs.Config{Address: addr, TLS: config, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	return client.State(t.Context())
}

func TestRenewedCertificateIsReadOnTheNextHandshake(t *testing.T) {
	authority := certs.NewAuthority(t)
	head := tlsHead(t, authority)
	dir := t.TempDir()
	write := func(file string, content []byte) string {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old, renewed := authority.IssueExpired(t, "heliostat"), authority.Issue(t, "heliostat")
	files, err := gcs.FileTLS(write("ca.crt", authority.PEM), write("tls.crt", old.Cert), write("tls.key", old.Key), tlsName)
	if err != nil {
		t.Fatal(err)
	}
	read := func() error {
		_, err := readFrom(t, head.Addr(), files, 20*time.Second)
		return err
	}
	if err := read(); !errors.Is(err, raydemand.ErrUnavailable) {
		t.Errorf("with an expired certificate: %v", err)
	}
	write("tls.crt", renewed.Cert)
	if err := read(); !errors.Is(err, raydemand.ErrUnavailable) || !strings.Contains(err.Error(), "reading Ray client certificate") {
		t.Errorf("while only one of two files is renewed: %v", err)
	}
	write("tls.key", renewed.Key)
	if err := read(); err != nil {
		t.Errorf("after the files were renewed: %v", err)
	}
}

func TestUnusableCertificatesAreTold(t *testing.T) {
	authority := certs.NewAuthority(t)
	pair := authority.Issue(t, "heliostat")
	if _, err := gcs.LoadTLS([]byte("no PEM"), pair.Cert, pair.Key, ""); err == nil {
		t.Error("a CA without certificate was accepted")
	}
	if _, err := gcs.LoadTLS(authority.PEM, pair.Cert, authority.Issue(t, "x").Key, ""); err == nil {
		t.Error("a key of another certificate was accepted")
	}
	if _, err := gcs.FileTLS("no/ca", "no/cert", "no/key", ""); err == nil {
		t.Error("missing files were accepted")
	}
}
