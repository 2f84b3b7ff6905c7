package nodeagent_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
)

func (f *fixture) logs(pod *corev1.Pod, options *corev1.PodLogOptions) string {
	f.Helper()
	log, err := f.cluster.Client().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return string(log)
}

func (f *fixture) exec(pod *corev1.Pod, command ...string) (string, error) {
	f.Helper()
	request := f.cluster.Client().CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
		SubResource("exec").VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(f.cluster.RESTConfig(), "POST", request.URL())
	if err != nil {
		f.Fatal(err)
	}
	var output, problems bytes.Buffer
	err = executor.StreamWithContext(f.Context(), remotecommand.StreamOptions{Stdout: &output, Stderr: &problems})
	if problems.Len() > 0 {
		f.Logf("%s: %s", command, problems.String())
	}
	return output.String(), err
}

func TestInitContainersRunFirstAndInOrder(t *testing.T) {
	f := newFixture(t)
	pod := f.shell("init-order", "echo c >>/work/order; cat /work/order")
	pod.Spec.InitContainers = []corev1.Container{
		f.container("first", "sleep 0.3; echo first >>/work/order"),
		f.container("second", "echo second >>/work/order"),
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	mount := []corev1.VolumeMount{{Name: "work", MountPath: "/work"}}
	pod.Spec.Containers[0].VolumeMounts = mount
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].VolumeMounts = mount
	}
	pod = f.untilPhase(f.create(pod), corev1.PodSucceeded)
	if diff := cmp.Diff("first\nsecond\nc\n", f.logs(pod, &corev1.PodLogOptions{})); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	init := pod.Status.InitContainerStatuses
	if first, second := init[0].State.Terminated, init[1].State.Terminated; second.StartedAt.Before(&first.FinishedAt) {
		t.Errorf("the second init container started at %s, before the first ended at %s", second.StartedAt, first.FinishedAt)
	}
}

func TestAFailedInitContainerFailsThePod(t *testing.T) {
	f := newFixture(t)
	pod := f.shell("init-fails", "echo never")
	pod.Spec.InitContainers = []corev1.Container{f.container("first", "exit 4"), f.container("second", "true")}
	pod = f.untilPhase(f.create(pod), corev1.PodFailed)
	if code := pod.Status.InitContainerStatuses[0].State.Terminated.ExitCode; code != 4 {
		t.Errorf("exit code of the init container = %d, want 4", code)
	}
	if pod.Status.InitContainerStatuses[1].State.Waiting == nil || pod.Status.ContainerStatuses[0].State.Waiting == nil {
		t.Errorf("something ran after the init container that failed: %+v", pod.Status)
	}
}

func TestAPodHasItsEnvironmentAndVolumes(t *testing.T) {
	t.Setenv("AGENT_ONLY", "leaked")
	f := newFixture(t)
	ctx, core := t.Context(), f.cluster.Client().CoreV1()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "env-secret"}, StringData: map[string]string{"k": "hidden"}}
	if _, err := core.Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = core.Secrets("default").Delete(context.Background(), "env-secret", metav1.DeleteOptions{}) })
	pod := f.shell("env", `
		echo "name=$NAME ip=$IP host=$HOSTNAME secret=$SECRET agent=$AGENT_ONLY"
		echo "api=$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT_HTTPS"
		cat /brand/new/place/k; echo
		cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; echo
		test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo token
		grep -c BEGIN /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
		touch /brand/new/place/x 2>/dev/null || echo read-only`)
	pod.Spec.Volumes = []corev1.Volume{{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "env-secret"}}}}
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "s", MountPath: "/brand/new/place", ReadOnly: true}}
	c.Env = []corev1.EnvVar{
		{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "env-secret"}, Key: "k",
		}}},
	}
	pod = f.untilPhase(f.create(pod), corev1.PodSucceeded)
	want := "name=env ip=" + pod.Status.PodIP + " host=env secret=hidden agent=\n" +
		"api=" + f.cluster.APIServer() + "\nhidden\ndefault\ntoken\n1\nread-only\n"
	if diff := cmp.Diff(want, f.logs(pod, &corev1.PodLogOptions{})); diff != "" {
		t.Errorf("output of the pod (-want +got):\n%s", diff)
	}
}

func TestACrashIsTheContainersExitCode(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct {
		script string
		code   int32
	}{
		"exit-3":  {"exit 3", 3},
		"sigkill": {"exec sleep 7654", 137},
	} {
		pod := f.create(f.shell(name, c.script))
		if name == "sigkill" {
			// From outside: processes in a PID namespace cannot kill its process 1, as in a real pod.
			f.untilProcesses("sleep 7654", 1)
			kill(t, processes(t, "sleep 7654")[0])
		}
		pod = f.untilPhase(pod, corev1.PodFailed)
		if got := pod.Status.ContainerStatuses[0].State.Terminated; got.ExitCode != c.code || got.Reason != "Error" {
			t.Errorf("%s: ended with %d %q, want %d", name, got.ExitCode, got.Reason, c.code)
		}
	}
}

func TestRestartPolicyOnFailureRestartsUntilItSucceeds(t *testing.T) {
	f := newFixture(t)
	pod := f.shell("on-failure", "echo run >>$HOME/runs; echo run $(wc -l <$HOME/runs); test $(wc -l <$HOME/runs) = 3")
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	pod = f.untilPhase(f.create(pod), corev1.PodSucceeded)
	if got := pod.Status.ContainerStatuses[0].RestartCount; got != 2 {
		t.Errorf("restart count = %d, want 2", got)
	}
	if got := f.logs(pod, &corev1.PodLogOptions{}); got != "run 3\n" {
		t.Errorf("log = %q, want the log of the last run", got)
	}
	if got := f.logs(pod, &corev1.PodLogOptions{Previous: true}); got != "run 2\n" {
		t.Errorf("previous log = %q, want the log of the run before", got)
	}
}

func TestLogsAreFollowedAndCut(t *testing.T) {
	f := newFixture(t)
	pod := f.untilPhase(f.create(f.shell("logs", "echo one; echo two; until test -e $HOME/go; do sleep 0.05; done; echo three")), corev1.PodRunning)
	stream, err := f.cluster.Client().CoreV1().Pods("default").GetLogs("logs", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	first := make([]byte, len("one\ntwo\n"))
	if _, err := io.ReadFull(stream, first); err != nil {
		t.Fatal(err)
	}
	if _, err := f.exec(pod, "bash", "-c", "touch $HOME/go"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(first) + string(rest); got != "one\ntwo\nthree\n" {
		t.Errorf("followed log = %q", got)
	}
	two := int64(2)
	if got := f.logs(pod, &corev1.PodLogOptions{TailLines: &two}); got != "two\nthree\n" {
		t.Errorf("last two lines = %q", got)
	}
}

func TestExecRunsInTheContainer(t *testing.T) {
	f := newFixture(t)
	pod := f.shell("exec", "exec sleep 600")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MINE", Value: "yes"}}
	pod = f.untilPhase(f.create(pod), corev1.PodRunning)
	output, err := f.exec(pod, "bash", "-c", "echo $MINE; ls /var/run/secrets/kubernetes.io/serviceaccount; exit 7")
	if output != "yes\nca.crt\nnamespace\ntoken\n" {
		t.Errorf("output = %q", output)
	}
	var code utilexec.CodeExitError
	if !errors.As(err, &code) || code.Code != 7 {
		t.Errorf("exec ended with %v, want exit code 7", err)
	}
}

func TestReadinessFollowsTheProbe(t *testing.T) {
	f := newFixture(t)
	pod := f.shell("ready", "exec sleep 600")
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"bash", "-c", "test -e $HOME/ready"}}},
	}
	pod = f.untilPhase(f.create(pod), corev1.PodRunning)
	ready := func(want corev1.ConditionStatus) func(*corev1.Pod) bool {
		return func(p *corev1.Pod) bool {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady {
					return c.Status == want
				}
			}
			return false
		}
	}
	pod = f.until(pod, "not ready", ready(corev1.ConditionFalse))
	if _, err := f.exec(pod, "bash", "-c", "touch $HOME/ready"); err != nil {
		t.Fatal(err)
	}
	f.until(pod, "ready", ready(corev1.ConditionTrue))
	if _, err := f.exec(pod, "bash", "-c", "rm $HOME/ready"); err != nil {
		t.Fatal(err)
	}
	f.until(pod, "not ready again", ready(corev1.ConditionFalse))
}

func TestAFailedLivenessProbeRestartsTheContainer(t *testing.T) {
	f := newFixture(t)
	pod := f.shell("liveness", "exec sleep 600")
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{
		PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(9)}},
	}
	f.until(f.create(pod), "a restart", func(p *corev1.Pod) bool {
		statuses := p.Status.ContainerStatuses
		return len(statuses) == 1 && statuses[0].RestartCount > 0 && statuses[0].LastTerminationState.Terminated != nil
	})
}

func TestAnUnknownImageWaitsUntilItIsKnown(t *testing.T) {
	f := newFixture(t)
	pod := f.shell("image", "echo ran")
	pod.Spec.Containers[0].Image = "nobody/knows:1"
	pod = f.until(f.create(pod), "ErrImagePull", func(p *corev1.Pod) bool {
		statuses := p.Status.ContainerStatuses
		return len(statuses) == 1 && statuses[0].State.Waiting != nil && statuses[0].State.Waiting.Reason == "ErrImagePull"
	})
	if message := pod.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(message, "nobody/knows:1") {
		t.Errorf("message %q does not name the image", message)
	}
	f.agent.SetImage("nobody/knows", "")
	f.untilPhase(pod, corev1.PodSucceeded)
}

func TestForeignMetadataSurvivesStatusUpdates(t *testing.T) {
	f := newFixture(t)
	pod := f.untilPhase(f.create(f.shell("metadata", "until test -e $HOME/go; do sleep 0.05; done")), corev1.PodRunning)
	patch := []byte(`{"metadata":{"labels":{"added":"yes"},"annotations":{"note":"kept"},"finalizers":["test.example/hold"]}}`)
	pods := f.cluster.Client().CoreV1().Pods("default")
	if _, err := pods.Patch(t.Context(), "metadata", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = pods.Patch(context.Background(), "metadata", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	if _, err := f.exec(pod, "bash", "-c", "touch $HOME/go"); err != nil {
		t.Fatal(err)
	}
	pod = f.untilPhase(pod, corev1.PodSucceeded)
	if pod.Labels["added"] != "yes" || pod.Annotations["note"] != "kept" || len(pod.Finalizers) != 1 {
		t.Errorf("labels %v, annotations %v, finalizers %v: want those of the patch too", pod.Labels, pod.Annotations, pod.Finalizers)
	}
}

func TestSetNodeUpdatesTheNodeObject(t *testing.T) {
	f := newFixture(t)
	spec := agentConfig("", f.node, "").Nodes[0]
	spec.Capacity["nvidia.com/gpu"] = "8"
	spec.Labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-80GB"
	begin := time.Now()
	if err := f.agent.SetNode(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	node, err := f.cluster.Client().CoreV1().Nodes().Get(t.Context(), f.node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gpus := node.Status.Allocatable["nvidia.com/gpu"]
	if gpus.Value() != 8 || node.Labels["nvidia.com/gpu.product"] == "" || len(node.Spec.Taints) != 1 {
		t.Errorf("node has %s GPUs, labels %v, taints %v", gpus.String(), node.Labels, node.Spec.Taints)
	}
	t.Logf("updated after %s", time.Since(begin))
}
