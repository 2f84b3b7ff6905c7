package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// shell is a shell in a terminal, into which the tests type one block after the other.
type shell struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
}

// open starts a shell without a profile. The shell exits after the first command that fails, because a reader would
// stop there.
func open(dir string, env []string) (*shell, error) {
	s := &shell{
		cmd:   exec.Command("bash", "--noprofile", "--norc", "-euo", "pipefail", "-s"),
		lines: make(chan string, 1<<16),
	}
	s.cmd.Dir, s.cmd.Env = dir, env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("opening a shell: %w", err)
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("opening a shell: %w", err)
	}
	s.cmd.Stderr = s.cmd.Stdout
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("opening a shell: %w", err)
	}
	go func() {
		defer close(s.lines)
		scanner := bufio.NewScanner(stdout)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			s.lines <- scanner.Text()
		}
	}()
	return s, nil
}

// done is the text that the shell prints at the end of a block.
const done = "block is done"

// errEnded means that a command failed and the shell exited.
var errEnded = errors.New("a command failed")

// send types a block.
func (s *shell) send(commands string) error {
	_, err := io.WriteString(s.stdin, commands)
	return err
}

// run types a block and returns its output when it is done.
func (s *shell) run(ctx context.Context, commands string) (string, error) {
	if err := s.send(commands + "echo; echo '" + done + "'\n"); err != nil {
		return "", fmt.Errorf("typing: %w", err)
	}
	var printed strings.Builder
	for {
		select {
		case line, more := <-s.lines:
			if !more {
				return printed.String(), errEnded
			}
			if line == done {
				return printed.String(), nil
			}
			printed.WriteString(line + "\n")
		case <-ctx.Done():
			return printed.String(), fmt.Errorf("waiting for its end: %w", context.Cause(ctx))
		}
	}
}

// interrupt sends Ctrl-C to every process in the terminal. It returns the output until they exit.
func (s *shell) interrupt(within time.Duration) (string, error) {
	if err := errors.Join(s.stdin.Close(), syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT)); err != nil {
		return "", fmt.Errorf("interrupting: %w", err)
	}
	late := time.AfterFunc(within, s.kill)
	defer late.Stop()
	var printed strings.Builder
	for line := range s.lines {
		printed.WriteString(line + "\n")
	}
	return printed.String(), s.cmd.Wait()
}

// kill kills the shell and all processes that are still in its process group.
func (s *shell) kill() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) } // it may have exited already
