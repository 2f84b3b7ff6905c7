package engine

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

// headService is a name in the certificate of package httptest.
const headService = "example.com"

// TestTheSidecarTakesTokenAndCertificatesFromItsOwnEnvironment has no manager, because the Role that KubeRay creates
// for a sidecar does not allow it to read Secrets.
func TestTheSidecarTakesTokenAndCertificatesFromItsOwnEnvironment(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	shown := certified.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(shown.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: shown.Certificate[0]})
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	files := map[string]string{
		"RAY_USE_TLS": "1", "RAY_TLS_CA_CERT": write("ca.crt", cert),
		"RAY_TLS_SERVER_CERT": write("tls.crt", cert), "RAY_TLS_SERVER_KEY": write("tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}
	tests := []struct {
		name string
		env  map[string]string
		auth nodepool.Auth
		tls  bool
	}{
		{name: "the token that KubeRay injects", env: map[string]string{"RAY_AUTH_TOKEN": "secret"},
			auth: nodepool.Auth{Required: true, TokenSecret: "llm", TokenKey: "auth_token"}},
		{name: "a token in a file", env: map[string]string{"RAY_AUTH_TOKEN_PATH": write("token", []byte("secret\n"))},
			auth: nodepool.Auth{Required: true, KubernetesToken: true}},
		{name: "the token goes before its file", env: map[string]string{"RAY_AUTH_TOKEN": "secret", "RAY_AUTH_TOKEN_PATH": "/does/not/exist"},
			auth: nodepool.Auth{Required: true}},
		{name: "certificates too", env: files, auth: nodepool.Auth{Token: "secret", TLSSecret: "ray-worker-secret-llm"}, tls: true},
		{name: "certificates that only the environment tells of", env: files, auth: nodepool.Auth{Token: "secret"}, tls: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var server *tls.Config
			if test.tls {
				server = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certified.TLS.Certificates,
					ClientAuth: tls.RequireAnyClientCert}
			}
			ray := &rayHead{token: "secret"}
			stop, err := ray.start(server)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			o := options{kube: kube.Options{Single: &nodepool.ClusterKey{Namespace: "ml", Name: "llm"}}, loop: controller.Config{GCSTimeout: 10 * time.Second}}
			client, err := o.dialer(nil)(t.Context(), nodepool.Cluster{Head: headAt(t, ray.addr), Auth: test.auth})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			if _, err := client.State(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the operator's network policy closes is the reason in status, which shows the error of the reading.
func TestASilentHeadBehindANetworkPolicyIsToldWithThePolicy(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	at := headAt(t, silent.Addr().String())
	at.Ready, at.ClosedBy = true, "spec.networkPolicy (DenyAll) closes it"
	for single, want := range map[*nodepool.ClusterKey]bool{nil: true, {Namespace: "ml", Name: "llm"}: false} {
		o := options{kube: kube.Options{Single: single}, loop: controller.Config{GCSTimeout: 100 * time.Millisecond}}
		client, err := o.dialer(nil)(t.Context(), nodepool.Cluster{Head: at})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.State(t.Context())
		_ = client.Close()
		told := controller.HeadSummary(err, at)
		if strings.HasSuffix(told, "spec.networkPolicy (DenyAll) closes it: `autoscaler doctor` prints the ingress rule for Heliostat") != want {
			t.Errorf("single %v: %s", single, told)
		}
	}
}

func headAt(t *testing.T, address string) nodepool.Head {
	t.Helper()
	ip, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return nodepool.Head{IP: ip, GCSPort: int32(number), ServiceFQDN: headService}
}
