package access

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/test/devcluster"
)

const (
	mine    = "/v1/namespaces/ml/rayclusters/llm"
	theirs  = "/v1/namespaces/dev/rayclusters/llm"
	nowhere = "/v1/namespaces/dev/rayclusters/there-is-none"
)

// newAccount creates a ServiceAccount in namespace ml, binds ClusterRoles to it there, and returns a caller with its
// token.
func newAccount(t *testing.T, name string, roles ...string) *caller {
	t.Helper()
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := lab.Client().CoreV1().ServiceAccounts("ml").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, role := range roles {
		must(t, bindIn(t.Context(), "ml", role, account("ml", name)))
	}
	token, err := tokenOf(t.Context(), "ml", name)
	must(t, err)
	return callerWith(t, token)
}

// namespacesOf returns the namespaces of the clusters in a list.
func namespacesOf(t *testing.T, list string) string {
	t.Helper()
	var read struct {
		Items []struct{ Namespace string }
	}
	if err := json.Unmarshal([]byte(list), &read); err != nil {
		t.Fatalf("%v in %s", err, list)
	}
	var all []string
	for _, item := range read.Items {
		all = append(all, item.Namespace)
	}
	return strings.Join(all, " ")
}

func TestAViewerSeesItsNamespaceAndNothingElse(t *testing.T) {
	viewer := newAccount(t, "viewer", "heliostat-viewer")
	until(t, "the role to count", func() bool { status, _ := viewer.call("GET", mine, ""); return status == http.StatusOK })
	viewer.want(200, "GET "+mine+"/request_resources", "")
	viewer.want(200, "GET /v1/namespaces/ml/rayclusters", "")
	viewer.want(404, "GET /v1/namespaces/ml/rayclusters/other", "")
	if got := namespacesOf(t, viewer.want(200, "GET /v1/rayclusters", "")); got != "ml" {
		t.Errorf("the fleet shows %q, want ml", got)
	}
	viewer.want(403, "POST "+mine+"/request_resources", `{"num_cpus":1}`)
	viewer.want(403, "DELETE "+mine+"/request_resources", "")
	viewer.want(403, "PUT "+mine+"/freeze", "")
	viewer.want(403, "GET /v1/namespaces/dev/rayclusters", "")
	viewer.want(403, "GET /v1/nodepools", "")
	there, notThere := viewer.want(403, "GET "+theirs, ""), viewer.want(403, "GET "+nowhere, "")
	if strings.ReplaceAll(notThere, "there-is-none", "llm") != there {
		t.Errorf("what exists is told from what does not:\n%s%s", there, notThere)
	}
}

func TestAnEditorRequestsAndDoesNotFreeze(t *testing.T) {
	editor := newAccount(t, "editor", "heliostat-viewer", "heliostat-editor")
	until(t, "the role to count", func() bool {
		status, _ := editor.call("POST", mine+"/request_resources", `{"num_cpus":2}`)
		return status == http.StatusOK
	})
	if got := editor.want(200, "GET "+mine+"/request_resources", ""); !strings.Contains(got, `"count":2`) {
		t.Errorf("kept is %s", got)
	}
	editor.want(204, "DELETE "+mine+"/request_resources", "")
	editor.want(403, "PUT "+mine+"/freeze", "")
	editor.want(403, "POST "+theirs+"/request_resources", `{"num_cpus":1}`)
}

func TestWhoMayPatchARayClusterMayFreezeIt(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "patch"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"get", "patch", "request"}},
	}}
	if _, err := lab.Client().RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	owner := newAccount(t, "owner", "patch")
	until(t, "the role to count", func() bool { status, _ := owner.call("PUT", mine+"/freeze", ""); return status == http.StatusNoContent })
	resource := lab.Dynamic().Resource(schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}).Namespace("ml")
	frozen := func() string {
		t.Helper()
		object, err := resource.Get(t.Context(), "llm", metav1.GetOptions{})
		must(t, err)
		return object.GetAnnotations()["heliostat.dev/freeze"]
	}
	if got := frozen(); got != "true" {
		t.Errorf("the annotation is %q", got)
	}
	owner.want(409, "POST "+mine+"/request_resources", `{"num_cpus":1}`)
	owner.want(204, "PUT "+mine+"/freeze", "")
	owner.want(204, "DELETE "+mine+"/freeze", "")
	owner.want(204, "DELETE "+mine+"/freeze", "")
	if got := frozen(); got != "" {
		t.Errorf("after unfreezing the annotation is %q", got)
	}
	owner.want(200, "POST "+mine+"/request_resources", `[]`)
	owner.want(404, "PUT /v1/namespaces/ml/rayclusters/other/freeze", "")
}

func TestTokensThatDoNotCountAreRefusedEverywhere(t *testing.T) {
	for name, token := range map[string]string{
		"none": "", "nobody's": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl", "nonsense": "admin",
	} {
		c := callerWith(t, token)
		for _, path := range []string{mine, nowhere, "/v1/rayclusters", "/v1/namespaces/ml/rayclusters", "/v1/nodepools"} {
			if text := c.want(401, "GET "+path, ""); !strings.Contains(text, "problems/unauthenticated") {
				t.Errorf("%s token: %s", name, text)
			}
		}
		c.want(200, "GET /healthz", "")
		c.want(200, "GET /openapi.yaml", "")
		c.want(200, "GET /", "")
	}
	other, err := tokenOf(t.Context(), "heliostat", "heliostat", "vault")
	must(t, err)
	callerWith(t, other).want(401, "GET "+mine, "")
}

func TestATokenOfAnAccountThatIsGoneSoonCountsNoMore(t *testing.T) {
	t.Parallel()
	leaver := newAccount(t, "leaver", "heliostat-viewer")
	until(t, "the role to count", func() bool { status, _ := leaver.call("GET", mine, ""); return status == http.StatusOK })
	must(t, lab.Client().CoreV1().ServiceAccounts("ml").Delete(t.Context(), "leaver", metav1.DeleteOptions{}))
	until(t, "the token to be refused", func() bool { status, _ := leaver.call("GET", mine, ""); return status == http.StatusUnauthorized })
}

func TestMetricsAndProbesHavePortsOfTheirOwn(t *testing.T) {
	for url, want := range map[string]string{
		fleet.probes + "/healthz": "ok\n", fleet.probes + "/readyz": "ok\n", fleet.metrics + "/metrics": "# HELP",
	} {
		response, err := http.Get(url)
		must(t, err)
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("GET %s: %s, %v, %.100q", url, response.Status, err, text)
		}
	}
	for _, url := range []string{fleet.metrics + mine, fleet.probes + "/metrics", fleet.metrics + "/healthz"} {
		response, err := http.Get(url)
		must(t, err)
		response.Body.Close()
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %s, want nothing there", url, response.Status)
		}
	}
	callerWith(t, "").want(401, "GET /metrics", "")
}

func TestARenewedCertificateIsShownToNewConnections(t *testing.T) {
	before := callerWith(t, "")
	before.want(200, "GET /healthz", "")
	must(t, fleet.renew("second"))
	until(t, "the new certificate", func() bool {
		connection, err := tls.Dial("tcp", strings.TrimPrefix(fleet.url, "https://"), &tls.Config{InsecureSkipVerify: true})
		must(t, err)
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].Issuer.CommonName == "second"
	})
	before.want(200, "GET /healthz", "") // an open connection stays open
	callerWith(t, "").want(200, "GET /healthz", "")
}

func TestWithoutTheAPIServerNobodyIsLetIn(t *testing.T) {
	known := newAccount(t, "known", "heliostat-viewer")
	until(t, "the role to count", func() bool { status, _ := known.call("GET", mine, ""); return status == http.StatusOK })
	token, err := tokenOf(t.Context(), "ml", "known")
	must(t, err)
	must(t, lab.KillPart(devcluster.APIServer))
	unseen := callerWith(t, token)
	if text := unseen.want(503, "GET "+mine, ""); !strings.Contains(text, "cannot be reviewed now") || strings.Contains(text, lab.APIServer()) {
		t.Errorf("a token that was never seen: %s", text)
	}
	unseen.want(200, "GET /healthz", "")
	until(t, "what is remembered of a caller to end", func() bool { status, _ := known.call("GET", mine, ""); return status == http.StatusServiceUnavailable })
	must(t, lab.RestartPart(t.Context(), devcluster.APIServer))
	until(t, "callers to be let in again", func() bool { status, _ := known.call("GET", mine, ""); return status == http.StatusOK })
}
