package nodeagent_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// processes lists the processes of this machine whose command line ends with the given words.
func processes(t *testing.T, words string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	var pids []int
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		if strings.HasSuffix(strings.ReplaceAll(strings.TrimSuffix(string(line), "\x00"), "\x00", " "), words) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			must(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

func kill(t *testing.T, pid int) {
	t.Helper()
	must(t, syscall.Kill(pid, syscall.SIGKILL))
}

func TestDeletionSendsSIGTERMAndKeepsTheLog(t *testing.T) {
	f := newFixture(t)
	pod := f.shell("graceful", `trap 'echo terminated; exit 0' TERM; echo up; while true; do sleep 0.05; done`)
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
		Exec: &corev1.ExecAction{Command: []string{"bash", "-c", "echo before >>/proc/1/fd/1"}},
	}}
	*pod.Spec.TerminationGracePeriodSeconds = 30
	pod = f.untilPhase(f.create(pod), corev1.PodRunning)
	err := wait.PollUntilContextTimeout(f.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return f.logFile(pod, "c") == "up\n", nil // its trap is set
	})
	must(t, err)
	if took := f.delete(pod); took > 29*time.Second {
		t.Errorf("a process that ends on SIGTERM took %s with a grace period of 30s", took)
	}
	if got := f.logFile(pod, "c"); got != "up\nbefore\nterminated\n" {
		t.Errorf("log = %q", got)
	}
}

func TestDeletionKillsTheWholeTreeAndNothingElse(t *testing.T) {
	f := newFixture(t)
	const tree = `trap '' TERM; (setsid sleep 8001 &); (setsid bash -c 'trap "" TERM; sleep 8001; true' &); exec sleep 8001`
	pod := f.create(f.shell("stubborn", tree))
	neighbor := f.create(f.shell("neighbor", "(setsid sleep 8002 &); exec sleep 8002"))
	f.untilPhase(pod, corev1.PodRunning)
	f.untilPhase(neighbor, corev1.PodRunning)
	f.untilProcesses("sleep 8001", 3)
	f.untilProcesses("sleep 8002", 2)
	took := f.delete(pod)
	if left := processes(t, "sleep 8001"); len(left) > 0 {
		t.Errorf("processes %v of a deleted pod still run", left)
	}
	if got := processes(t, "sleep 8002"); len(got) != 2 {
		t.Errorf("%d of the neighbor's 2 processes still run", len(got))
	}
	if took < time.Second || took > 29*time.Second { // without a grace period of its own it would be 30s
		t.Errorf("a pod that ignores SIGTERM took %s with a grace period of 2s", took)
	}
}

func (f *fixture) untilProcesses(words string, count int) {
	f.Helper()
	err := wait.PollUntilContextTimeout(f.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return len(processes(f.T, words)) == count, nil
	})
	if err != nil {
		f.Fatalf("%d processes %q, want %d", len(processes(f.T, words)), words, count)
	}
}

func TestForcedDeletionDoesNotWait(t *testing.T) {
	f := newFixture(t)
	pod := f.untilPhase(f.create(f.shell("forced", `trap '' TERM; exec sleep 8003`)), corev1.PodRunning)
	err := f.cluster.Client().CoreV1().Pods("default").Delete(t.Context(), pod.Name, *metav1.NewDeleteOptions(0))
	must(t, err)
	f.untilProcesses("sleep 8003", 0)
	again := f.shell("forced", "echo again")
	f.untilPhase(f.create(again), corev1.PodSucceeded)
}

func TestStopLeavesNothing(t *testing.T) {
	f := newFixture(t)
	f.untilPhase(f.create(f.shell("left", `trap '' TERM; (setsid sleep 8004 &); exec sleep 8004`)), corev1.PodRunning)
	f.untilProcesses("sleep 8004", 2)
	must(t, f.agent.Stop(t.Context()))
	if left := processes(t, "sleep 8004"); len(left) > 0 {
		t.Errorf("processes %v still run", left)
	}
	entries, err := os.ReadDir(f.dir)
	must(t, err)
	for _, entry := range entries {
		if entry.Name() != "logs" {
			t.Errorf("the agent's directory still has %s", entry.Name())
		}
	}
}

func TestSIGKILLOfTheAgentEndsItsPods(t *testing.T) {
	f := newFixture(t)
	node := f.node + "-child"
	child := exec.Command(os.Args[0], node, t.TempDir())
	child.Env = append(os.Environ(), agentKubeconfig+"="+f.cluster.Kubeconfig())
	stdin, err := child.StdinPipe()
	must(t, err)
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the agent printed %q, %v", line, err)
	}
	pod := f.shell("orphan", `(setsid sleep 8005 &); exec sleep 8005`)
	pod.Spec.NodeSelector = map[string]string{"test": node}
	automount := false // the child has no certificate authority
	pod.Spec.AutomountServiceAccountToken = &automount
	f.untilPhase(f.create(pod), corev1.PodRunning)
	f.untilProcesses("sleep 8005", 2)
	must(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	f.untilProcesses("sleep 8005", 0)
	killed := *f
	killed.node = node
	killed.deleteNode()
}
