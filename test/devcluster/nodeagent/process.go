package nodeagent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// containerMark is the variable that tells whose container a process belongs to. It is set for every process of
// every container, and what they start inherits it.
const containerMark = "HELIOSTAT_CONTAINER"

// process is a container's first process with everything that came from it.
type process struct {
	cmd     *exec.Cmd
	mark    string // the value of containerMark
	sweeps  bool   // whether the kernel leaves descendants behind, so that they must be searched for
	started time.Time
	// prepared is closed when the container's own command runs: the mounts are there, SIGTERM reaches the right one.
	prepared chan struct{}
	done     chan struct{} // closed when the first process has ended and nothing of it is left

	// Valid once done is closed.
	ended  time.Time
	status syscall.WaitStatus
}

// startProcess runs command, as wrapped for the isolation. Output goes to log, which stays open here.
func (s *spawner) startProcess(command []string, env []string, dir, mark string, log *os.File) (*process, error) {
	// The preparation closes its end before it becomes the command; so does the kernel if it ends before that.
	preparing, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	cmd := &exec.Cmd{
		Path:        command[0],
		Args:        command,
		Env:         append(env, containerMark+"="+mark),
		Dir:         dir,
		Stdout:      log,
		Stderr:      log,
		SysProcAttr: s.isolation.attributes(),
	}
	if s.isolation.mounts {
		cmd.ExtraFiles = []*os.File{theirs}
	}
	p := &process{
		cmd: cmd, mark: mark, sweeps: !s.isolation.pids,
		prepared: make(chan struct{}), done: make(chan struct{}),
	}
	err = errors.Join(s.start(cmd), theirs.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", command[0], err), preparing.Close())
	}
	p.started = time.Now()
	go p.prepare(preparing)
	go p.wait()
	return p, nil
}

func (p *process) prepare(preparing *os.File) {
	defer close(p.prepared)
	defer preparing.Close()
	_, _ = preparing.Read(make([]byte, 1)) // nothing is written: it ends when the other end is closed
}

func (p *process) wait() {
	defer close(p.done)
	_ = p.cmd.Wait() // the exit status says it all
	if p.sweeps {
		killMarked(p.mark)
	}
	p.ended = time.Now()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		p.status = status
	}
}

// pid is the number of the container's first process as the machine sees it.
func (p *process) pid() string { return strconv.Itoa(p.cmd.Process.Pid) }

// terminate asks the first process to end.
func (p *process) terminate() { p.signal(syscall.SIGTERM) }

// kill ends the whole tree: where the container has a PID namespace the kernel does that once its first process is
// gone, elsewhere wait does. Ray's processes rename themselves, which overwrites the environment that others see, so
// there the descendants are killed as well, while they can still be told by their parents.
func (p *process) kill() {
	var below []int
	if p.sweeps {
		below = descendants(p.cmd.Process.Pid)
	}
	p.signal(syscall.SIGKILL)
	for _, pid := range below {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one that has just ended is what we want
	}
}

func (p *process) signal(s syscall.Signal) {
	// os.Process knows when the process was waited for, so a number that was given out again is never signaled.
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return
	}
}

// exit is the container's exit code and the number of the signal that ended it, or 0. A signal counts as 128 + its
// number, as every shell and every container runtime does.
func (p *process) exit() (code, signal int32) {
	if p.status.Signaled() {
		signal = int32(p.status.Signal())
		return 128 + signal, signal
	}
	return int32(p.status.ExitStatus()), 0
}

// killMarked kills every process whose environment carries the mark, again and again until none is left: a process
// may start another while we look.
func killMarked(mark string) {
	for range 100 {
		pids := markedProcesses(mark)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // one that has just ended is what we want
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// descendants lists the processes that came from pid and whose line of parents still leads there.
func descendants(pid int) []int {
	children := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// pid (name) state ppid …, where the name may hold anything, parentheses too.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			children[parent] = append(children[parent], child)
		}
	}
	var found []int
	for next := children[pid]; len(next) > 0; next = next[1:] {
		found = append(found, next[0])
		next = append(next, children[next[0]]...)
	}
	return found
}

// markedProcesses lists living processes by the mark in the environment they were started with. Zombies have none.
func markedProcesses(mark string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	wanted := []byte("\x00" + containerMark + "=" + mark + "\x00")
	var pids []int
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), wanted) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
