package devcluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// startSleeper starts a process with one variable in its environment, in a session of its own as pods' processes are.
func startSleeper(t *testing.T, variable string) <-chan struct{} {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Env = []string{variable}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
	})
	return ended
}

// clusterDir makes a directory as a cluster has it, with a log.
func clusterDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "c1")
	must(t, os.MkdirAll(filepath.Join(dir, logsDir), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "kubeconfig"), nil, 0o600))
	return dir
}

func TestTheJanitorEndsWhatAKilledClusterLeftAndNothingElse(t *testing.T) {
	dir := clusterDir(t)
	part := startSleeper(t, markVariable+"="+dir)
	pod := startSleeper(t, "HOME="+dir+"/pods/7/home")
	neighbour := startSleeper(t, markVariable+"="+dir+"0")
	user := startSleeper(t, "KUBECONFIG="+dir+"/kubeconfig")
	short := filepath.Join(t.TempDir(), "hs1")
	must(t, errors.Join(os.MkdirAll(filepath.Join(short, "1"), 0o755), os.Symlink(short, filepath.Join(dir, "r"))))
	j, err := startJanitor(dir, "")
	must(t, err)
	j.pipe.Close() // as the kernel does when the cluster's process is killed
	if err := j.cmd.Wait(); err != nil {
		t.Errorf("the janitor: %v", err)
	}
	for name, ended := range map[string]<-chan struct{}{"part": part, "pod": pod} {
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Errorf("the %s still runs", name)
		}
	}
	for name, ended := range map[string]<-chan struct{}{"neighbour": neighbour, "user's shell": user} {
		select {
		case <-ended:
			t.Errorf("the %s was killed", name)
		default:
		}
	}
	for _, gone := range []string{dir, short} {
		if exists(gone) {
			t.Errorf("%s is still there", gone)
		}
	}
}

func TestTheJanitorKeepsTheLogsThatAreToBeKept(t *testing.T) {
	dir := clusterDir(t)
	j, err := startJanitor(dir, logsDir)
	must(t, err)
	j.pipe.Close()
	if err := j.cmd.Wait(); err != nil {
		t.Errorf("the janitor: %v", err)
	}
	if !exists(filepath.Join(dir, logsDir)) || exists(filepath.Join(dir, "kubeconfig")) {
		t.Errorf("logs kept: %t, kubeconfig kept: %t", exists(filepath.Join(dir, logsDir)), exists(filepath.Join(dir, "kubeconfig")))
	}
}

func TestADismissedJanitorTouchesNothing(t *testing.T) {
	dir := clusterDir(t)
	part := startSleeper(t, markVariable+"="+dir)
	j, err := startJanitor(dir, "")
	must(t, err)
	must(t, j.dismiss())
	select {
	case <-part:
		t.Error("a process was killed")
	default:
	}
	if !exists(dir) {
		t.Error("the directory is gone")
	}
}

func TestPollReturnsWhatWasSeenLast(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	notReady := errors.New("not ready")
	err := poll(ctx, time.Hour, func(context.Context) error {
		cancel()
		return notReady
	})
	if !errors.Is(err, notReady) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want both errors", err)
	}
}
