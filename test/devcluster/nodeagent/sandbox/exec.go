package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Exec is a command that runs beside a container's process.
type Exec struct {
	Args           []string // Args[0] is the path of the program
	Env            []string // NAME=value
	Dir            string   // the working directory
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Exec runs a command in the namespaces of the process and waits for it. It kills the command when ctx is canceled. If
// the command fails, the error is an *exec.ExitError.
func (p *Process) Exec(ctx context.Context, e Exec) error {
	<-p.prepared
	argv := p.spawner.isolation.enter(strconv.Itoa(p.cmd.Process.Pid), e.Dir, e.Args)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(slices.Clone(e.Env), containerID+"="+p.id)
	cmd.Dir = e.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.Stdin, e.Stdout, e.Stderr
	// A client can keep its end of stdin open after the command has ended.
	cmd.WaitDelay = time.Second
	if err := p.spawner.start(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
		return err
	}
	return nil
}

// LookPath finds a program as execvp does, in the container's PATH instead of the agent's.
func LookPath(name, path string) (string, error) {
	if filepath.Base(name) != name {
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("executable file %q not found in PATH %s", name, path)
}
