package engine

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/simray"
	"heliostat.dev/heliostat/internal/simray/certs"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

const headService = "llm-head-svc.ml.svc.cluster.local"

// TestTheSidecarTakesTokenAndCertificatesFromItsOwnEnvironment has no manager, because the Role that KubeRay creates
// for a sidecar does not allow it to read Secrets.
func TestTheSidecarTakesTokenAndCertificatesFromItsOwnEnvironment(t *testing.T) {
	authority := certs.NewAuthority(t)
	pair := authority.Issue(t, headService)
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	files := map[string]string{
		"RAY_USE_TLS": "1", "RAY_TLS_CA_CERT": write("ca.crt", authority.PEM),
		"RAY_TLS_SERVER_CERT": write("tls.crt", pair.Cert), "RAY_TLS_SERVER_KEY": write("tls.key", pair.Key),
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
			simulated := simray.Options{Token: "secret"}
			if test.tls {
				simulated.TLS = authority.ServerTLS(t, pair)
			}
			head, err := simray.Start(simulated)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(head.Close)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			o := options{kube: kube.Options{Single: &nodepool.ClusterKey{Namespace: "ml", Name: "llm"}}, loop: controller.Config{GCSTimeout: 10 * time.Second}}
			ray, err := o.dialer(nil)(t.Context(), nodepool.Cluster{Head: headAt(t, head.Addr()), Auth: test.auth})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ray.Close() }()
			if _, err := ray.State(t.Context()); err != nil {
				t.Error(err)
			}
		})
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
