package access

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// relay forwards connections from an address in this machine's network to Heliostat. Kubernetes rejects loopback
// addresses in endpoints, and the programs of this cluster listen only on loopback.
func relay(t *testing.T) net.Addr {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	var listener net.Listener
	for _, address := range addresses {
		if of, ok := address.(*net.IPNet); ok && of.IP.To4() != nil && of.IP.IsGlobalUnicast() && listener == nil {
			listener, err = net.Listen("tcp4", net.JoinHostPort(of.IP.String(), "0"))
		}
	}
	must(t, err)
	if listener == nil {
		t.Skip("this machine has loopback addresses alone, of which Kubernetes takes none for an endpoint")
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go join(from)
		}
	}()
	return listener.Addr()
}

// join copies in both directions until one side closes the connection.
func join(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", strings.TrimPrefix(fleet.url, "https://"))
	if err != nil {
		return // the API server reports that there is no response
	}
	defer to.Close()
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1]) // either side may close first
			ended <- struct{}{}
		}()
	}
	<-ended
}

// newService creates the chart's Service with one pod, at an address. The API server's proxy forwards calls only to
// addresses of pods, and finds them through Endpoints.
func newService(t *testing.T, at net.Addr) {
	t.Helper()
	address := at.(*net.TCPAddr)
	ip, core := address.IP.String(), lab.Client().CoreV1()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "heliostat"}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Name: "https", Port: 8090}},
	}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "heliostat-0"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "heliostat", Image: "heliostat"}}}}
	_, err := core.Services("heliostat").Create(t.Context(), service, metav1.CreateOptions{})
	if err == nil {
		pod, err = core.Pods("heliostat").Create(t.Context(), pod, metav1.CreateOptions{})
	}
	if err == nil {
		pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
		_, err = core.Pods("heliostat").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	}
	if err == nil {
		_, err = lab.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("endpoints")).Namespace("heliostat").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Endpoints", "metadata": map[string]any{"name": "heliostat"},
			"subsets": []any{map[string]any{
				"addresses": []any{map[string]any{"ip": ip, "targetRef": map[string]any{"kind": "Pod", "namespace": "heliostat", "name": "heliostat-0"}}},
				"ports":     []any{map[string]any{"name": "https", "port": int64(address.Port)}},
			}},
		}}, metav1.CreateOptions{})
	}
	must(t, err)
}

// commandLine runs `autoscaler` with a kubeconfig that contains the token of a ServiceAccount of ml, and a file with its
// token for Heliostat alone. It has no other setting to find the server.
type commandLine struct {
	*testing.T
	environment []string
}

func newCommandLine(t *testing.T, name string) *commandLine {
	t.Helper()
	token, err := tokenOf(t.Context(), "ml", name)
	must(t, err)
	own, err := tokenOf(t.Context(), "ml", name, "heliostat")
	must(t, err)
	config := clientcmdapi.NewConfig()
	admin := lab.RESTConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "user", Namespace: "ml"}
	config.CurrentContext = "lab"
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, path))
	file := filepath.Join(dir, "token")
	must(t, os.WriteFile(file, []byte(own), 0o600))
	return &commandLine{t, []string{"KUBECONFIG=" + path, "HELIOSTAT_TOKEN_FILE=" + file, "HOME=" + dir, "TMPDIR=" + dir}}
}

func (c *commandLine) command(ctx context.Context, arguments string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, fleet.program, strings.Fields(arguments)...)
	cmd.Env = c.environment
	return cmd
}

// run returns the output of a command, and whether the command succeeded.
func (c *commandLine) run(arguments string) (string, bool) {
	c.Helper()
	out, err := c.command(c.Context(), arguments).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.Fatal(err)
	}
	return string(out), err == nil
}

// want runs a command and asserts that it succeeds and prints all of the texts.
func (c *commandLine) want(arguments string, texts ...string) {
	c.Helper()
	out, ok := c.run(arguments)
	for _, text := range texts {
		if !ok || !strings.Contains(out, text) {
			c.Errorf("autoscaler %s: want in it %q, got (%v)\n%s", arguments, text, ok, out)
		}
	}
}

// mayPass lets a ServiceAccount call the Service through the API server, and nothing else.
func mayPass(t *testing.T, name string) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "pass-" + name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"services/proxy"}, ResourceNames: []string{"https:heliostat:8090"}, Verbs: []string{"get", "create", "update", "delete"},
	}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, Subjects: []rbacv1.Subject{account("ml", name)},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}}
	_, err := lab.Client().RbacV1().Roles("heliostat").Create(t.Context(), role, metav1.CreateOptions{})
	if err == nil {
		_, err = lab.Client().RbacV1().RoleBindings("heliostat").Create(t.Context(), binding, metav1.CreateOptions{})
	}
	must(t, err)
}

func TestCommandsReachHeliostatThroughTheAPIServer(t *testing.T) {
	newService(t, relay(t))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "operate"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"get", "list", "patch", "request"}},
	}}
	if _, err := lab.Client().RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	operator := newAccount(t, "operator", "operate")
	newAccount(t, "stranger")
	newAccount(t, "outsider", "operate")
	for _, name := range []string{"stranger", "operator"} {
		mayPass(t, name)
	}
	c := newCommandLine(t, "operator")
	var last string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("status said last: %s", last)
		}
	})
	until(t, "the roles to count", func() (ok bool) {
		last, ok = c.run("status llm")
		return ok && operator.mayList()
	})

	c.want("status", "llm")
	c.want("status llm", "gpu")
	c.want("explain llm --group gpu", "gpu")
	until(t, "a request to be kept, once their definition is read", func() bool {
		_, ok := c.run(`request llm --id train-7 --lease 10m --bundle {"GPU":1,"count":2}`)
		return ok
	})
	c.want("request llm -o json", `"id": "train-7"`, `"owner": "system:serviceaccount:ml:operator"`)
	c.want("request llm --id train-7 --delete", "")

	c.want("freeze llm", "rozen")
	until(t, "the status to say so", func() bool {
		out, ok := c.run("status llm")
		return ok && strings.Contains(out, "rozen")
	})
	c.want("unfreeze llm", "")

	s := newCommandLine(t, "stranger")
	if out, ok := s.run("status llm"); ok || !strings.Contains(out, "may not get rayclusters.ray.io") {
		t.Errorf("who may pass the API server alone sees (%v) %s", ok, out)
	}
	outsider := newCommandLine(t, "outsider")
	if out, ok := outsider.run("status llm"); ok || !strings.Contains(out, `services "https:heliostat:8090" is forbidden`) {
		t.Errorf("who may not pass the API server sees (%v) %s", ok, out)
	}
}

// mayList reports whether the caller may list the fleet. New role bindings take effect after a short delay.
func (c *caller) mayList() bool {
	status, text := c.call(http.MethodGet, "/v1/rayclusters", "")
	return status == http.StatusOK && strings.Contains(text, `"llm"`)
}
