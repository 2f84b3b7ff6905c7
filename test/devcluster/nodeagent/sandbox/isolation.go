package sandbox

import (
	_ "embed"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// containerScript sets up the mounts of a container inside its namespaces and then executes its command.
//
//go:embed container.sh
var containerScript string

// isolation is the set of namespaces that the machine allows for a container.
type isolation struct {
	user   bool // a user namespace; users without privileges need it for the others
	mounts bool // a mount namespace: volumes appear at their mount paths
	pids   bool // a PID namespace: the kernel kills all processes when the command ends
}

// String lists the namespaces.
func (i isolation) String() string {
	var names []string
	for _, ns := range []struct {
		has  bool
		name string
	}{{i.user, "user"}, {i.mounts, "mount"}, {i.pids, "pid"}} {
		if ns.has {
			names = append(names, ns.name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "+")
}

// detectIsolation runs containerScript with each set of namespaces, best first, and returns the first that works. Many
// machines refuse some of them, because of seccomp profiles, AppArmor, or masked parts of /proc in a container.
func detectIsolation() isolation {
	user := os.Geteuid() != 0
	for _, candidate := range []isolation{
		{user: user, mounts: true, pids: true},
		{user: true, mounts: true, pids: true},
		{user: user, mounts: true},
		{user: true, mounts: true},
	} {
		if candidate.works() {
			return candidate
		}
	}
	return isolation{}
}

func (i isolation) works() bool {
	scratch, err := os.MkdirTemp("", "isolation")
	if err != nil {
		return false
	}
	defer os.RemoveAll(scratch)
	argv := i.wrap(scratch, "/", nil, []string{"/bin/true"})
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = i.attributes()
	cmd.ExtraFiles = []*os.File{os.Stdin} // containerScript closes file descriptor 3
	return cmd.Run() == nil
}

// attributes of a container's first process: a new session, the namespaces, and SIGKILL when the Spawner's thread ends.
func (i isolation) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if i.mounts {
		attributes.Cloneflags |= syscall.CLONE_NEWNS
	}
	if i.pids {
		attributes.Cloneflags |= syscall.CLONE_NEWPID
	}
	if i.user {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attributes
}

// Mount shows a directory or file of the machine at another path in the container.
type Mount struct {
	Source, Target string
	ReadOnly       bool
}

// wrap returns the command line of containerScript that ends in command.
func (i isolation) wrap(scratch, workdir string, mounts []Mount, command []string) []string {
	if !i.mounts {
		return command
	}
	newProc := "0"
	if i.pids {
		newProc = "1"
	}
	argv := []string{"/bin/bash", "-c", containerScript, "container.sh", scratch, newProc, workdir}
	for _, m := range mounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		argv = append(argv, m.Source, m.Target, mode)
	}
	return append(append(argv, "--"), command...)
}

// enter returns the command line that runs command inside the namespaces of process pid.
func (i isolation) enter(pid, workdir string, command []string) []string {
	if !i.mounts {
		return command
	}
	argv := []string{"nsenter", "--target", pid, "--mount", "--root"}
	if i.pids {
		argv = append(argv, "--pid")
	}
	if i.user {
		argv = append(argv, "--user", "--preserve-credentials")
	}
	// nsenter's --wd would open the directory outside the namespaces, where it can be another one.
	argv = append(argv, "--", "/bin/sh", "-c", `cd "$0" && exec "$@"`, workdir)
	return append(argv, command...)
}
