package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	utilexec "k8s.io/utils/exec"
)

// exec runs a command beside the container's process, in its namespaces and with its environment. It is killed when
// ctx ends. A command that fails is a utilexec.ExitError, which the exec endpoint turns into an exit code.
func (c *container) exec(ctx context.Context, command []string, stdin io.Reader, stdout, stderr io.Writer) error {
	c.pod.mu.Lock()
	proc, env, workdir := c.process, c.env, c.workdir
	c.pod.mu.Unlock()
	if proc == nil {
		return fmt.Errorf("running a command in container %s: the container is not running", c.spec.Name)
	}
	<-proc.prepared
	path, err := lookProgram(command[0], env["PATH"])
	if err != nil {
		return utilexec.CodeExitError{Err: err, Code: 127}
	}
	spawner := c.pod.agent().spawner
	argv := spawner.isolation.enter(proc.pid(), workdir, append([]string{path}, command[1:]...))
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(env.list(), containerMark+"="+c.mark())
	cmd.Dir = workdir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	// A client may keep its end of stdin open; the command's end is what counts.
	cmd.WaitDelay = time.Second
	if err := spawner.start(cmd); err != nil {
		return fmt.Errorf("running a command in container %s: %w", c.spec.Name, err)
	}
	err = cmd.Wait()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return utilexec.CodeExitError{Err: err, Code: failed.ExitCode()}
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}
