package kube

import (
	"context"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Credentials are what a GCS requires from its callers. It does not require empty fields.
type Credentials struct {
	// Token is sent as a bearer token.
	Token string
	// CA, Cert and Key are PEM; Ray's TLS is mutual. ServerName is the name in the head's certificate.
	CA, Cert, Key []byte
	ServerName    string
}

// Credentials reads the Secrets that a cluster's Auth names, from the API server each time. They are not cached, so
// this needs no right to list Secrets, and the next call uses a rotated one.
func (m *Manager) Credentials(ctx context.Context, cluster nodepool.Cluster) (Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	var credentials Credentials
	token, err := m.token(ctx, cluster)
	if err != nil {
		return credentials, fmt.Errorf("reading the token of %s: %w", cluster.Key, err)
	}
	credentials.Token = token
	if cluster.Auth.TLSSecret == "" {
		return credentials, nil
	}
	secret, err := m.secret(ctx, cluster.Key.Namespace, cluster.Auth.TLSSecret, corev1.ServiceAccountRootCAKey,
		corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	if err != nil {
		return credentials, fmt.Errorf("reading the certificate for %s: %w", cluster.Key, err)
	}
	credentials.CA = secret[corev1.ServiceAccountRootCAKey]
	credentials.Cert, credentials.Key = secret[corev1.TLSCertKey], secret[corev1.TLSPrivateKeyKey]
	credentials.ServerName = cluster.Head.ServiceFQDN
	return credentials, nil
}

func (m *Manager) token(ctx context.Context, cluster nodepool.Cluster) (string, error) {
	auth := cluster.Auth
	switch {
	case auth.KubernetesToken:
		return m.kubernetesToken()
	case auth.TokenSecret != "":
		secret, err := m.secret(ctx, cluster.Key.Namespace, auth.TokenSecret, auth.TokenKey)
		return strings.TrimSpace(string(secret[auth.TokenKey])), err
	case auth.Token == "" && auth.Required:
		return "", fmt.Errorf("the GCS requires one, and nothing names it")
	}
	return auth.Token, nil
}

// kubernetesToken returns the token for heads that ask the API server about their callers. Whoever runs such a head can
// read it, so it is never this process's own. Projected tokens rotate, so the file is read each time.
func (m *Manager) kubernetesToken() (string, error) {
	if m.options.KubernetesTokenFile == "" {
		return "", fmt.Errorf("the GCS requires a ServiceAccount token, and this process has none to share")
	}
	token, err := os.ReadFile(m.options.KubernetesTokenFile)
	return strings.TrimSpace(string(token)), err
}

// reportToken adds the finding that Heliostat does not call a head because it has no token for it.
func (m *Manager) reportToken(cluster *nodepool.Cluster) {
	// The single form has the token that KubeRay put beside it.
	if !cluster.Auth.KubernetesToken || m.options.KubernetesTokenFile != "" || m.options.Single != nil {
		return
	}
	cluster.Findings = append(cluster.Findings, raydemand.Finding{
		Code:     decode.KubernetesTokenUnset,
		Severity: raydemand.Error,
		Object:   "RayCluster " + cluster.Key.String(),
		Field:    "spec.authOptions.enableK8sTokenAuth",
		Seen:     "true",
		Why: "the GCS requires a ServiceAccount token, which whoever runs the head could then use; no token is " +
			"configured for that, so Heliostat does not call the head",
		Fix: "start Heliostat with --gcs-kubernetes-token-file: a token of a ServiceAccount that may do " +
			"ray:write on RayClusters and nothing else",
	})
}

func (m *Manager) secret(ctx context.Context, namespace, name string, keys ...string) (map[string][]byte, error) {
	secret, err := m.core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, name, err)
	}
	for _, key := range keys {
		if len(secret.Data[key]) == 0 {
			return nil, fmt.Errorf("reading Secret %s/%s: it has no %s", namespace, name, key)
		}
	}
	return secret.Data, nil
}
