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

// shell is a terminal's shell, into which blocks are typed one after the other.
type shell struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
}

// open starts a shell without any profile. It ends at the first command that fails, as a reader would stop there.
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

// done is what the shell is let say at the end of a block.
const done = "block is done"

// errEnded says that a command failed and ended the shell.
var errEnded = errors.New("a command failed")

// send types a block.
func (s *shell) send(commands string) error {
	_, err := io.WriteString(s.stdin, commands)
	return err
}

// run types a block and returns what it prints until it is done.
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

// interrupt is Ctrl-C, which reaches all that runs in the terminal. What is printed until the end is returned.
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

// kill ends the shell and all that it started and that stayed in its group.
func (s *shell) kill() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) } // gone already is as good
