package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/kit"
	"heliostat.dev/heliostat/test/rig"
)

// clinic runs the program against the dev cluster, and runs the printed commands in a shell with kubectl.
type clinic struct {
	*scene
	program, path string
}

func (s *scene) clinic() clinic {
	s.Helper()
	dir := s.TempDir()
	program, err := rig.Build(s.Context(), dir)
	must(s, err)
	built, err := kit.Ensure(s.Context(), devcluster.Needs{Parts: []devcluster.Part{kit.Kubectl}}, os.Stderr)
	must(s, err)
	must(s, os.Symlink(built.Bin(kit.Kubectl), filepath.Join(dir, "kubectl")))
	return clinic{s, program, dir + ":" + os.Getenv("PATH")}
}

// seen is the part of a finding that the test compares.
type seen struct {
	Code, Severity, Object, Field, Fix string
}

// examined runs `autoscaler doctor` and returns its findings by code, and the exit code.
func (c clinic) examined(kubeconfig string, arguments ...string) (map[string]seen, int) {
	c.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(c.Context(), c.program, append([]string{"doctor", "--kubeconfig", kubeconfig, "-o", "json"}, arguments...)...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		c.Fatal(err)
	}
	var report struct{ Findings []seen }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		c.Fatalf("%v: %s%s", err, out.String(), errOut.String())
	}
	byCode := map[string]seen{}
	for _, f := range report.Findings {
		byCode[f.Code] = f
	}
	return byCode, cmd.ProcessState.ExitCode()
}

// run runs a printed fix in a shell as a cluster administrator.
func (c clinic) run(fix string) {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "sh", "-c", fix)
	cmd.Env = []string{"PATH=" + c.path, "KUBECONFIG=" + lab.Kubeconfig(), "HOME=" + c.TempDir()}
	if out, err := cmd.CombinedOutput(); err != nil {
		c.Errorf("%s: %v: %s", fix, err, out)
	}
}

// ill is a RayCluster with three faults.
func ill(namespace string) *unstructured.Unstructured {
	cluster := rig.Cluster{Namespace: namespace, Name: "llm", Groups: []rig.Group{{Name: "gpu", Min: 3, Max: 1, Devices: map[string]int64{"nvidia.com/gpu": 1}}}}.Manifest()
	group := cluster.Object["spec"].(map[string]any)["workerGroupSpecs"].([]any)[0].(map[string]any)
	container := group["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["env"] = []any{map[string]any{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}}
	container["resources"].(map[string]any)["requests"] = map[string]any{"nvidia.com/gpu": "2"}
	return cluster
}

// TestDoctorFindsPlantedFaultsAndSaysWhatMendsThem makes the changes that the fixes name and checks that the findings are
// gone.
func TestDoctorFindsPlantedFaultsAndSaysWhatMendsThem(t *testing.T) {
	s := stage(t, "doctor")
	c := s.clinic()
	s.gpuNode("doctor-1")
	s.createAs(ill(s.namespace))
	found, ended := c.examined(lab.Kubeconfig(), "-n", s.namespace, "llm")
	if ended != 1 {
		t.Errorf("exit %d, want 1: there are errors", ended)
	}
	planted := map[string]struct{ field, fix string }{
		"min-above-max": {"spec.workerGroupSpecs[0].minReplicas", "make 0 <= minReplicas <= maxReplicas"},
		"gpu-limit-differs": {`spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests["nvidia.com/gpu"]`,
			`set spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests["nvidia.com/gpu"] to `},
		"gpu-visible-all": {"spec.workerGroupSpecs[0].template.spec.containers[0].env[0].value",
			"remove spec.workerGroupSpecs[0].template.spec.containers[0].env[0]"},
	}
	for code, want := range planted {
		f, there := found[code]
		fix := "kubectl edit raycluster llm -n " + s.namespace + "  # " + want.fix
		if !there || f.Object != "RayCluster/"+s.namespace+"/llm" || f.Field != want.field || !strings.HasPrefix(f.Fix, fix) {
			t.Errorf("%s: got %+v, want it at %s with the fix %s; found %v", code, f, want.field, fix, found)
		}
	}
	const container = "/spec/workerGroupSpecs/0/template/spec/containers/0"
	c.run("kubectl patch raycluster llm -n " + s.namespace + ` --type=json -p '[` +
		`{"op": "replace", "path": "/spec/workerGroupSpecs/0/maxReplicas", "value": 3}, ` +
		`{"op": "replace", "path": "` + container + `/resources/requests/nvidia.com~1gpu", "value": "1"}, ` +
		`{"op": "remove", "path": "` + container + `/env/0"}]'`)
	found, ended = c.examined(lab.Kubeconfig(), "-n", s.namespace, "llm")
	for code := range planted {
		if f, there := found[code]; there {
			t.Errorf("after its fix: %+v", f)
		}
	}
	ills := func(f seen) bool { return f.Severity == "error" && !strings.HasPrefix(f.Object, "Node/") }
	s.until("the operator to take back what it said of the RayCluster before", func() bool {
		found, ended = c.examined(lab.Kubeconfig(), "-n", s.namespace, "llm")
		return !slices.ContainsFunc(slices.Collect(maps.Values(found)), ills)
	})
	severe := slices.ContainsFunc(slices.Collect(maps.Values(found)), func(f seen) bool { return f.Severity == "error" })
	if severe != (ended == 1) {
		t.Errorf("exit %d with %v", ended, found)
	}
}

// viewer returns the kubeconfig of an account that may only list RayClusters in the namespace.
func (s *scene) viewer() string {
	s.Helper()
	meta := metav1.ObjectMeta{Name: "viewer", Namespace: s.namespace}
	client := lab.Client()
	_, errAccount := client.CoreV1().ServiceAccounts(s.namespace).Create(s.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	_, errRole := client.RbacV1().Roles(s.namespace).Create(s.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"get", "list"}},
	}}, metav1.CreateOptions{})
	_, errBinding := client.RbacV1().RoleBindings(s.namespace).Create(s.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: meta.Name, Namespace: s.namespace}},
	}, metav1.CreateOptions{})
	reply, errToken := client.CoreV1().ServiceAccounts(s.namespace).CreateToken(s.Context(), meta.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(s, errors.Join(errAccount, errRole, errBinding, errToken))
	server := lab.RESTConfig()
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: server.Host, CertificateAuthorityData: server.CAData, CertificateAuthority: server.CAFile}
	config.AuthInfos["viewer"] = &clientcmdapi.AuthInfo{Token: reply.Status.Token}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "viewer"}
	config.CurrentContext = "lab"
	path := filepath.Join(s.TempDir(), "kubeconfig")
	must(s, clientcmd.WriteToFile(*config, path))
	return path
}

func TestDoctorSaysWhichRightsItLacksAndHowToGrantThem(t *testing.T) {
	s := stage(t, "doctor-rights")
	c := s.clinic()
	s.createAs(ill(s.namespace))
	viewer := s.viewer()
	found, _ := c.examined(viewer, "-n", s.namespace)
	nodes, there := found["nodes-forbidden"]
	if !there || nodes.Object != "Node" {
		t.Fatalf("found %v, want nodes-forbidden", found)
	}
	if _, planted := found["gpu-limit-differs"]; !planted {
		t.Errorf("what may be read is not examined: found %v", found)
	}
	if f := found["list-forbidden"]; f.Fix == "" {
		t.Errorf("no word of the other kinds: found %v", found)
	}
	c.run(nodes.Fix)
	c.run("kubectl create clusterrolebinding heliostat-nodes --clusterrole=heliostat-nodes --serviceaccount=" + s.namespace + ":viewer")
	s.until("the right to list nodes", func() bool {
		found, _ = c.examined(viewer, "-n", s.namespace)
		_, there = found["nodes-forbidden"]
		return !there
	})
}
