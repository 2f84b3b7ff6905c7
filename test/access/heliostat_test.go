package access

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/test/rig"
)

// heliostat is `autoscaler serve` with TLS, and with separate ports for metrics and probes.
type heliostat struct {
	*rig.Process
	program, dir         string
	url, metrics, probes string
	cert, key, ca        string
	server               *authority // signs the certificate that the server presents
}

// startHeliostat starts Heliostat with the given token, and returns when it is ready.
func startHeliostat(ctx context.Context, dir, token string) (*heliostat, error) {
	h := &heliostat{dir: dir}
	h.cert, h.key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	h.ca = filepath.Join(dir, "server-ca.crt")
	ports := make([]string, 3)
	for i := range ports {
		address, err := rig.FreeAddress(lab.Host())
		if err != nil {
			return nil, err
		}
		ports[i] = address
	}
	h.url, h.metrics, h.probes = "https://"+ports[0], "http://"+ports[1], "http://"+ports[2]
	kubeconfig, err := h.kubeconfig(token)
	err = errors.Join(err, h.renew("first"))
	if err != nil {
		return nil, err
	}
	program, err := rig.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	h.program = program
	h.Process, err = rig.Launch(ctx, program, dir, h.probes+"/readyz", nil, "--kubeconfig", kubeconfig, "--listen", ports[0], "--tls-cert-file", h.cert,
		"--tls-key-file", h.key, "--metrics-bind-address", ports[1], "--health-probe-bind-address", ports[2],
		"--requests-per-second", "2000", "--mode", "managed")
	return h, err
}

func (h *heliostat) logged() string {
	text, err := os.ReadFile(h.Log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// kubeconfig writes a kubeconfig with the API server's address and the token, and returns its path.
func (h *heliostat) kubeconfig(token string) (string, error) {
	admin := lab.RESTConfig()
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile}
	config.AuthInfos["heliostat"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "heliostat"}
	config.CurrentContext = "lab"
	path := filepath.Join(h.dir, "kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// renew gives Heliostat a certificate from a new authority with the given name.
func (h *heliostat) renew(name string) error {
	server, err := newAuthority(name)
	if err != nil {
		return err
	}
	shown, err := server.server(lab.Host())
	if err != nil {
		return err
	}
	h.server = server
	return errors.Join(os.WriteFile(h.ca, server.pem, 0o600), os.WriteFile(h.cert, shown.cert, 0o600), os.WriteFile(h.key, shown.key, 0o600))
}

func (h *heliostat) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	h.Stop(ctx)
}

// caller calls Heliostat over its own connections.
type caller struct {
	*testing.T
	token  string
	client *http.Client
}

// callerWith returns a caller for a test, with a token or without one.
func callerWith(t *testing.T, token string) *caller {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(fleet.server.certificate)
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{T: t, token: token, client: &http.Client{Transport: transport, Timeout: time.Minute}}
}

// call returns the status and the body of a response.
func (c *caller) call(method, path, body string) (int, string) {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), method, fleet.url+path, strings.NewReader(body))
	must(c, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.client.Do(request)
	must(c, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(c, err)
	return response.StatusCode, string(text)
}

// want checks the status of a call, which is written as METHOD PATH.
func (c *caller) want(status int, call, body string) string {
	c.Helper()
	method, path, _ := strings.Cut(call, " ")
	got, text := c.call(method, path, body)
	if got != status {
		c.Errorf("%s: %d, want %d: %s", call, got, status, text)
	}
	return text
}

// until waits until happened returns true, which takes seconds on an idle machine.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !happened(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waiting for %s: it did not happen; the log ends with:\n%s", what, last(fleet.logged(), 2000))
		}
	}
}

func last(text string, n int) string { return text[max(0, len(text)-n):] }

// applyFile creates the objects of a manifest.
func applyFile(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		if _, err := lab.Dynamic().Resource(resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// authority signs server certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// identity is a certificate with its key, in PEM.
type identity struct{ cert, key []byte }

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(pkix.Name{CommonName: name})
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &authority{certificate, key, encode("CERTIFICATE", der)}, err
}

// server returns a certificate for a server at an address.
func (a *authority) server(address string) (identity, error) {
	// the certificate has a name of its own, because an equal issuer and subject would mean self-signed
	template := template(pkix.Name{CommonName: "heliostat"})
	template.IPAddresses, template.ExtKeyUsage = []net.IP{net.ParseIP(address)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return identity{}, err
	}
	text, err := x509.MarshalPKCS8PrivateKey(key)
	return identity{encode("CERTIFICATE", der), encode("PRIVATE KEY", text)}, err
}

func template(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
