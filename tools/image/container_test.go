package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// container is the unpacked root directory of the image. The test starts programs in it as a container runtime does,
// with the image's user and environment. It isolates only the root directory and the user.
type container struct {
	root string
	env  []string
}

func newContainer(t *testing.T) container {
	t.Helper()
	image := imageFor(t, wholeImage(t).index, "amd64")
	config, err := image.ConfigFile()
	must(t, err)
	root := t.TempDir()
	must(t, os.Chmod(root, 0o755))
	for name, f := range unpacked(t, image) {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch f.header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, f.header.FileInfo().Mode().Perm())
		case tar.TypeSymlink:
			err = os.Symlink(f.header.Linkname, path)
		default:
			err = os.WriteFile(path, f.data, f.header.FileInfo().Mode().Perm())
		}
		must(t, err)
	}
	return container{root: root, env: config.Config.Env}
}

// command returns a process of the container. Without root, a user namespace provides the capability for chroot.
func (c container) command(t *testing.T, env []string, argv ...string) *exec.Cmd {
	t.Helper()
	const nobody = 65532
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Path, cmd.Err = argv[0], nil // the path is in the image, not on this machine
	cmd.Dir, cmd.Env = "/", append(append([]string{}, c.env...), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	} else {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getgid(), Size: 1}}
	}
	return cmd
}

func TestTheEntryPointRunsInTheUnpackedImage(t *testing.T) {
	c := newContainer(t)
	out, err := c.command(t, nil, "/"+autoscaler.path, "version", "-o", "yaml").CombinedOutput()
	release, chartErr := releaseOf(checkout)
	if err = errors.Join(err, chartErr); err != nil || !strings.Contains(string(out), "platform: linux/amd64") || !strings.Contains(string(out), "version: "+release+"\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// sidecar returns the command that KubeRay's operator wrote into a head pod. It comes from the recorded test data of
// the adapter that reads RayClusters.
func sidecar(t *testing.T) (argv []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, "pkg/nodepool/kube/decode/testdata/rayclusters/head-intree-v2.yaml"))
	must(t, err)
	var recorded struct {
		Operator struct {
			Sidecar struct{ Command, Args []string }
		}
	}
	must(t, yaml.Unmarshal(text, &recorded))
	s := recorded.Operator.Sidecar
	return append(s.Command, s.Args...)
}

// discovery is the part of an API server that a client needs to find pods.
var discovery = map[string]string{
	"/api": `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
		{"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["get", "list", "watch"]}]}`,
	"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
}

// apiServer returns 403 for everything except discovery, as for a ServiceAccount without rights. It sends the first
// call for pods by label to asked. The sidecar begins with it. Beside it, the sidecar asks for a pod by name, to
// learn the version of the storage.
func apiServer(t *testing.T) (server *httptest.Server, asked chan *http.Request) {
	asked = make(chan *http.Request, 1)
	var first sync.Once
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answer, ok := discovery[r.URL.Path]; ok {
			_, _ = w.Write([]byte(answer))
			return
		}
		if strings.HasSuffix(r.URL.Path, "/pods") && r.FormValue("labelSelector") != "" {
			first.Do(func() { asked <- r })
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`))
	}))
	t.Cleanup(server.Close)
	return server, asked
}

// TestTheLineThatKubeRayWritesStartsTheSidecarInTheUnpackedImage tests the start of the sidecar up to its first call to
// the API server. That call needs the shell, the name `ray`, the user's rights on its files and the pod's
// ServiceAccount.
func TestTheLineThatKubeRayWritesStartsTheSidecarInTheUnpackedImage(t *testing.T) {
	c := newContainer(t)
	server, asked := apiServer(t)
	account := filepath.Join(c.root, "var/run/secrets/kubernetes.io/serviceaccount")
	must(t, os.MkdirAll(account, 0o755))
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, data := range map[string][]byte{"token": []byte("of-the-pod"), "ca.crt": authority, "namespace": []byte("ml")} {
		must(t, os.WriteFile(filepath.Join(account, name), data, 0o644))
	}
	at, err := url.Parse(server.URL)
	must(t, err)
	host, port, err := net.SplitHostPort(at.Host)
	must(t, err)
	argv := sidecar(t)
	if want := []string{"/bin/bash", "-c", "--"}; strings.Join(argv[:3], " ") != strings.Join(want, " ") {
		t.Fatalf("KubeRay's line is %q", argv)
	}
	// The kubelet expands variables in args.
	argv[3] = strings.NewReplacer("$(RAY_CLUSTER_NAME)", "llm", "$(RAY_CLUSTER_NAMESPACE)", "ml").Replace(argv[3])
	var said bytes.Buffer
	cmd := c.command(t, []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, "RAY_CLUSTER_NAME=llm",
		"RAY_CLUSTER_NAMESPACE=ml", "KUBERAY_CRD_VER=v1"}, argv...)
	cmd.Stdout, cmd.Stderr = &said, &said
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case r := <-asked:
		if r.URL.Path != "/api/v1/namespaces/ml/pods" || r.FormValue("labelSelector") != "ray.io/cluster=llm" || r.Header.Get("Authorization") != "Bearer of-the-pod" {
			t.Errorf("asked %s as %q", r.URL, r.Header.Get("Authorization"))
		}
	case err := <-ended:
		t.Fatalf("ended at once: %v\n%s", err, &said)
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		<-ended
		t.Fatalf("pods were not asked for\n%s", &said)
	}
	if name, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "exe")); err == nil && !strings.HasSuffix(name, autoscaler.path) {
		t.Errorf("the container's process is %s, so the shell keeps the kubelet's signals from the autoscaler", name)
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended by SIGTERM with %v, want exit code 0\n%s", err, &said)
		}
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("SIGTERM did not end it")
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
