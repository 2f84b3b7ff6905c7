package podruntime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	utilexec "k8s.io/utils/exec"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/sandbox"
)

// Exec runs a command beside the container's process, in its namespaces and with its environment. It kills the command
// when ctx is canceled. If the command fails, the error is a utilexec.ExitError, as the exec endpoint expects.
func (c *Container) Exec(ctx context.Context, command []string, stdin io.Reader, stdout, stderr io.Writer) error {
	c.pod.mu.Lock()
	proc, vars, workdir := c.process, c.vars, c.workdir
	c.pod.mu.Unlock()
	if proc == nil {
		return fmt.Errorf("running a command in container %s: the container is not running", c.spec.Name)
	}
	<-proc.Prepared()
	path, err := sandbox.LookPath(command[0], vars["PATH"])
	if err != nil {
		return utilexec.CodeExitError{Err: err, Code: 127}
	}
	err = proc.Exec(ctx, sandbox.Exec{
		Args:   append([]string{path}, command[1:]...),
		Env:    vars.List(),
		Dir:    workdir,
		Stdin:  stdin,
		Stdout: stdout,
		Stderr: stderr,
	})
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return utilexec.CodeExitError{Err: err, Code: failed.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("running a command in container %s: %w", c.spec.Name, err)
	}
	return nil
}
