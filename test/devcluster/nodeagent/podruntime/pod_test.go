package podruntime

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/loopback"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/sandbox"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/volume"
)

// cluster is a fake of Objects with one Secret.
type cluster struct{}

func (cluster) ConfigMap(context.Context, string, string) (map[string]string, error) {
	return nil, errors.New("not found")
}

func (cluster) Secret(context.Context, string, string) (map[string]string, error) {
	return map[string]string{"k": "hidden"}, nil
}

func (cluster) Token(context.Context, *corev1.Pod, string) (string, error) { return "token", nil }

func (cluster) ServiceAddress(context.Context, string, string) (string, error) {
	return "", errors.New("not found")
}

func newRuntime(t *testing.T) *Runtime {
	t.Helper()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, []byte("ca"), 0o600); err != nil {
		t.Fatal(err)
	}
	addresses, err := loopback.NewAddresses("127.229.1.0/24")
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := volume.NewDirs(dir)
	if err != nil {
		t.Fatal(err)
	}
	tmpRay, err := volume.ShareMountPoint(volume.RayTempDir)
	if err != nil {
		t.Fatal(err)
	}
	spawner := sandbox.NewSpawner()
	t.Cleanup(func() {
		spawner.Close()
		if err := errors.Join(dirs.Remove(), tmpRay.Release()); err != nil {
			t.Error(err)
		}
	})
	return &Runtime{
		Spawner: spawner, Addresses: addresses, Dirs: dirs, Objects: cluster{},
		ImageDirectory: func(string) (string, bool) { return "", true },
		LogDir:         filepath.Join(dir, "logs"),
		CAFile:         ca,
		RestartBackoff: 10 * time.Millisecond,
		Log:            slog.New(slog.DiscardHandler),
	}
}

// shell returns a pod with one container that runs a script with the Secret in its environment.
func shell(script string) *corev1.Pod {
	secret := &corev1.SecretKeySelector{Key: "k", LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u-1"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "c", Image: "shell", Command: []string{"bash", "-c", script},
				Env: []corev1.EnvVar{{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: secret}}},
			}},
		},
	}
}

func start(t *testing.T, object *corev1.Pod) *Pod {
	t.Helper()
	pod, err := newRuntime(t).NewPod(t.Context(), "127.229.1.254", object)
	if err != nil {
		t.Fatal(err)
	}
	go pod.Run()
	t.Cleanup(func() {
		pod.Kill()
		pod.Release()
	})
	return pod
}

func (c *Container) text(t *testing.T) string {
	t.Helper()
	log, err := c.Logs(t.Context(), api.ContainerLogOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAPodRunsToItsEnd(t *testing.T) {
	pod := start(t, shell("echo $SECRET $HOSTNAME; exit 3"))
	<-pod.Done()
	status := pod.Status(corev1.PodStatus{})
	if status.Phase != corev1.PodFailed || status.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
		t.Errorf("status = %+v, want phase Failed with exit code 3", status)
	}
	if got := pod.Container("c").text(t); got != "hidden p\n" {
		t.Errorf("log = %q, want the Secret and the name of the pod", got)
	}
}

func TestExecRunsBesideTheContainerUntilThePodStops(t *testing.T) {
	object := shell("trap 'exit 0' TERM; while true; do sleep 0.05; done")
	pod := start(t, object)
	for pod.Status(corev1.PodStatus{}).Phase != corev1.PodRunning {
		<-pod.Changed()
	}
	var output bytes.Buffer
	err := pod.Container("c").Exec(t.Context(), []string{"bash", "-c", "echo $SECRET"}, nil, &output, &output)
	if err != nil || output.String() != "hidden\n" {
		t.Errorf("Exec: %v, output %q", err, output.String())
	}
	pod.Stop(10 * time.Second)
	if got := pod.Container("c").text(t); got != "" {
		t.Errorf("log = %q, want none", got)
	}
	err = pod.Container("c").Exec(t.Context(), []string{"true"}, nil, &output, &output)
	if err == nil {
		t.Error("Exec succeeded after the container had ended")
	}
}
