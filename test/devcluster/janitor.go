package devcluster

import (
	_ "embed"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// janitorScript is Bash, because a test's program cannot be asked to run again as something else, and Bash is there
// anyway: KubeRay starts Ray with it.
//
//go:embed janitor.sh
var janitorScript string

// markVariable stands in the environment of every process of a cluster; its value is the cluster's directory.
const markVariable = "HELIOSTAT_DEVCLUSTER"

// janitor waits beside a cluster and cleans up when the cluster's process is killed. The parent-death signal alone does
// not do that: it reaches children only, and it removes no files.
type janitor struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// startJanitor starts the janitor of the cluster in dir; keep is the entry of dir that is never removed, or "".
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

// dismiss ends the janitor: the cluster has cleaned up itself.
func (j *janitor) dismiss() error {
	if _, err := io.WriteString(j.pipe, "\n"); err != nil {
		return fmt.Errorf("dismissing the janitor: %w", err)
	}
	return j.cmd.Wait()
}
