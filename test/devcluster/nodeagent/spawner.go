package nodeagent

import (
	"os/exec"
	"runtime"
)

// spawner starts all processes from one thread that lives as long as the agent. PDEATHSIG fires when the *thread*
// that started a process ends, not the process it belongs to; so the thread must not be one the Go runtime may drop.
type spawner struct {
	isolation isolation
	requests  chan spawnRequest
}

type spawnRequest struct {
	cmd   *exec.Cmd
	reply chan error
}

func newSpawner() *spawner {
	s := &spawner{isolation: detectIsolation(), requests: make(chan spawnRequest)}
	go func() {
		runtime.LockOSThread()
		for request := range s.requests {
			request.reply <- request.cmd.Start()
		}
	}()
	return s
}

// start does what cmd.Start does.
func (s *spawner) start(cmd *exec.Cmd) error {
	request := spawnRequest{cmd: cmd, reply: make(chan error)}
	s.requests <- request
	return <-request.reply
}

// close ends the thread, and with it every process that still runs.
func (s *spawner) close() { close(s.requests) }
