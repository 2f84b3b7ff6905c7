package devcluster

import (
	_ "embed"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// janitorScript is a Bash script, because a test's program cannot run itself as another command. Bash is always there:
// KubeRay starts Ray with it.
//
//go:embed janitor.sh
var janitorScript string

// markVariable is in the environment of every process of a cluster. Its value is the cluster's directory.
const markVariable = "HELIOSTAT_DEVCLUSTER"

// janitor is a process that cleans up when the cluster's process is killed. The parent-death signal alone is not
// enough: it reaches only children and removes no files.
type janitor struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// startJanitor starts the janitor of the cluster in dir. It never removes the entry keep of dir, unless that is "".
func startJanitor(dir, keep string) (*janitor, error) {
	cmd := exec.Command("bash", "-c", janitorScript, "janitor.sh", dir, keep)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the janitor: %w", err)
	}
	return &janitor{cmd: cmd, pipe: pipe}, nil
}

// dismiss ends the janitor after the cluster itself has cleaned up.
func (j *janitor) dismiss() error {
	if _, err := io.WriteString(j.pipe, "\n"); err != nil {
		return fmt.Errorf("dismissing the janitor: %w", err)
	}
	return j.cmd.Wait()
}
