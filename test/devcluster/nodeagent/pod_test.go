package nodeagent_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
)

func (f *fixture) logs(pod *corev1.Pod, options *corev1.PodLogOptions) string {
	f.Helper()
	log, err := f.cluster.Client().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(f.Context())
	must(f, err)
	return string(log)
}

func (f *fixture) exec(pod *corev1.Pod, command ...string) (string, error) {
	f.Helper()
	request := f.cluster.Client().CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
		SubResource("exec").VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(f.cluster.RESTConfig(), "POST", request.URL())
	must(f, err)
	var output, problems bytes.Buffer
	err = executor.StreamWithContext(f.Context(), remotecommand.StreamOptions{Stdout: &output, Stderr: &problems})
	if problems.Len() > 0 {
		f.Logf("%s: %s", command, problems.String())
	}
	return output.String(), err
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
	must(t, err)
	defer stream.Close()
	first := make([]byte, len("one\ntwo\n"))
	if _, err := io.ReadFull(stream, first); err != nil {
		t.Fatal(err)
	}
	if _, err := f.exec(pod, "bash", "-c", "touch $HOME/go"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stream)
	must(t, err)
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
