package devcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// authority is a cluster's own certificate authority. It signs the API server's certificate and those of clients: the
// common name of a client certificate is the user, its organization the group.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// identity is a key and a certificate of the authority.
type identity struct{ certPEM, keyPEM []byte }

// validity is longer than anybody keeps a dev cluster.
const validity = 30 * 24 * time.Hour

// newAuthority creates an authority with its files in dir.
func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating the cluster's authority: %w", err)
	}
	template := certificate(pkix.Name{CommonName: "devcluster-ca"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("creating the cluster's authority: %w", err)
	}
	a := &authority{dir: dir, cert: template, key: key, pem: encode("CERTIFICATE", der)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the cluster's authority: %w", err)
	}
	return a, a.write("ca.crt", a.pem)
}

// certificate returns the template of all certificates. They begin in the past, because clocks differ a little.
func certificate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: subject,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// client returns the identity of a user in groups.
func (a *authority) client(user string, groups ...string) (identity, error) {
	template := certificate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// server writes name.crt and name.key for a server that is reached by these addresses.
func (a *authority) server(name string, hosts ...string) error {
	template := certificate(pkix.Name{CommonName: name})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	id, err := a.sign(template)
	if err != nil {
		return err
	}
	return a.writeIdentity(name, id)
}

// sign creates a key and a certificate for it.
func (a *authority) sign(template *x509.Certificate) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("creating the key of %s: %w", template.Subject, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return identity{}, fmt.Errorf("certifying %s: %w", template.Subject, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return identity{}, fmt.Errorf("encoding the key of %s: %w", template.Subject, err)
	}
	return identity{certPEM: encode("CERTIFICATE", der), keyPEM: keyPEM}, nil
}

// signingKey writes name.key and name.pub, which sign and verify service account tokens.
func (a *authority) signingKey(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("creating key %s: %w", name, err)
	}
	private, err := encodeKey(key)
	if err != nil {
		return fmt.Errorf("encoding key %s: %w", name, err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding key %s: %w", name, err)
	}
	if err := a.write(name+".key", private); err != nil {
		return err
	}
	return a.write(name+".pub", encode("PUBLIC KEY", public))
}

// kubeconfig writes a self-contained kubeconfig for a user and returns its path.
func (a *authority) kubeconfig(path, server, user string, groups ...string) error {
	id, err := a.client(user, groups...)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["devcluster"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.pem}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: id.certPEM, ClientKeyData: id.keyPEM}
	config.Contexts["devcluster"] = &clientcmdapi.Context{Cluster: "devcluster", AuthInfo: user, Namespace: "default"}
	config.CurrentContext = "devcluster"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return nil
}

// path returns the path of one of the authority's files.
func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) writeIdentity(name string, id identity) error {
	if err := a.write(name+".crt", id.certPEM); err != nil {
		return err
	}
	return a.write(name+".key", id.keyPEM)
}

func (a *authority) write(name string, data []byte) error {
	if err := os.WriteFile(a.path(name), data, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encode("EC PRIVATE KEY", der), nil
}
