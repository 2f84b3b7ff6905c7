package conformance

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// process is a child process with its own process group. Its output goes to a file.
type process struct {
	cmd  *exec.Cmd
	path string
	done chan struct{}
}

func startProcess(t *testing.T, cmd *exec.Cmd, path string) *process {
	t.Helper()
	output, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }() // the child has its own descriptor
	if cmd.Stdout == nil {
		cmd.Stdout = output
	}
	cmd.Stderr = output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, path: path, done: make(chan struct{})}
	go func() { defer close(p.done); _ = cmd.Wait() }()
	return p
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop sends SIGTERM, and ray start then stops its raylet and agents. Finally, stop kills what is left of the process
// group.
func (p *process) stop() {
	if p == nil {
		return
	}
	if !p.ended() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
		}
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // ESRCH if no process is left
	<-p.done
}

func (p *process) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
