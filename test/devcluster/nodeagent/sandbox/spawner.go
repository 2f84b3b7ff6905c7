package sandbox

import (
	"os/exec"
	"runtime"
)

// Spawner starts all processes from one thread that lives as long as the Spawner. The kernel sends PDEATHSIG when the
// thread that started a process ends, not when its program does, so the Go runtime must not be free to end the thread.
type Spawner struct {
	isolation isolation
	requests  chan spawnRequest
}

type spawnRequest struct {
	cmd   *exec.Cmd
	reply chan error
}

// NewSpawner finds out which namespaces the machine allows and starts the thread.
func NewSpawner() *Spawner {
	s := &Spawner{isolation: detectIsolation(), requests: make(chan spawnRequest)}
	go func() {
		runtime.LockOSThread()
		for request := range s.requests {
			request.reply <- request.cmd.Start()
		}
	}()
	return s
}

// Isolation lists the namespaces that each container gets, for the log.
func (s *Spawner) Isolation() string { return s.isolation.String() }

// HasMounts reports whether Command.Mounts have an effect on this machine.
func (s *Spawner) HasMounts() bool { return s.isolation.mounts }

// start calls cmd.Start on the thread of the Spawner.
func (s *Spawner) start(cmd *exec.Cmd) error {
	request := spawnRequest{cmd: cmd, reply: make(chan error)}
	s.requests <- request
	return <-request.reply
}

// Close ends the thread. The kernel then kills every process that still runs.
func (s *Spawner) Close() { close(s.requests) }
