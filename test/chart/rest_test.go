package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// caller calls the REST API of an install as a user with a token would: over TLS, with the CA from the chart's Secret.
type caller struct {
	*testing.T
	release *release
	client  *http.Client
}

func (r *release) rest() caller {
	r.Helper()
	name := r.deployment().Name
	secret, err := lab.Client().CoreV1().Secrets(r.namespace).Get(r.Context(), name+"-tls", metav1.GetOptions{})
	must(r, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		r.Fatal("the Secret has no certificate of its authority")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name + "." + r.namespace + ".svc"}}
	r.Cleanup(transport.CloseIdleConnections)
	return caller{r.T, r, &http.Client{Transport: transport, Timeout: 20 * time.Second}}
}

// call calls the API with a token and returns the status and the body. An empty token means none.
func (c caller) call(token, method, path, body string) (int, string) {
	c.Helper()
	pods := c.release.pods()
	if len(pods) == 0 {
		c.Fatal("there is no pod")
	}
	return c.callAt(&pods[0], token, method, path, body)
}

// callAt calls one of several pods. Status 0 means that there is no response.
func (c caller) callAt(pod *corev1.Pod, token, method, path, body string) (int, string) {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), method, "https://"+pod.Status.PodIP+":8090"+path, strings.NewReader(body))
	must(c, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(answer)
}

// want repeats a call until it returns the given status. Role aggregation and the first contact with a head take time.
func (c caller) want(status int, token, method, path, body string) string {
	c.Helper()
	var got int
	var answer string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if got, answer = c.call(token, method, path, body); got == status {
			return answer
		}
	}
	c.Fatalf("%s %s: status %d, want %d: %s\n%s", method, path, got, status, answer, c.release.state())
	return ""
}

// user creates a ServiceAccount, binds one of Kubernetes' own roles to it in its namespace, and returns a token. If
// role is "", it binds none.
func user(t *testing.T, namespace, name, role string) string {
	t.Helper()
	client := lab.Client()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if role != "" {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		}
		if _, err := client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	reply, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	return reply.Status.Token
}

// scrape returns the response for a path on one of the leader's plain HTTP ports.
func (r *release) scrape(port int, path string) string {
	r.Helper()
	pod := r.leader()
	if pod == nil {
		r.Fatal("no pod decides")
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, fmt.Sprintf("http://%s:%d%s", pod.Status.PodIP, port, path), nil)
	must(r, err)
	response, err := http.DefaultClient.Do(request)
	must(r, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		r.Fatalf("%s: status %d, %v", path, response.StatusCode, err)
	}
	return string(body)
}

// names returns the names in a list of RayClusters.
func names(t *testing.T, list string) []string {
	t.Helper()
	var answer struct {
		Items []struct{ Namespace, Name string }
	}
	must(t, json.Unmarshal([]byte(list), &answer))
	var found []string
	for _, item := range answer.Items {
		found = append(found, item.Namespace+"/"+item.Name)
	}
	return found
}
