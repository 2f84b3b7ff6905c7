package nodeagent

import (
	_ "embed"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// containerScript arranges the mounts of one container inside its namespaces and then becomes its command.
//
//go:embed container.sh
var containerScript string

// isolation is what the machine lets a container have of its own.
type isolation struct {
	user   bool // a user namespace, which lets a user without privileges have the others
	mounts bool // a mount namespace: volumes appear at their mount paths
	pids   bool // a PID namespace: the kernel ends everything when the container's command ends
}

// String names the namespaces, for the log.
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

// detectIsolation tries the kinds of isolation, best first, by running a container's preparation in each. Many
// machines refuse one or another: seccomp profiles, AppArmor, a /proc with masked parts inside another container.
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
	cmd.ExtraFiles = []*os.File{os.Stdin} // the preparation closes file descriptor 3
	return cmd.Run() == nil
}

// attributes of a container's first process: a session of its own, an end together with the agent, the namespaces.
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

// mount is one directory or file of the machine at a place of the container's choosing.
type mount struct {
	source, target string
	readOnly       bool
}

// wrap puts the preparation of the container in front of its command.
func (i isolation) wrap(scratch, workdir string, mounts []mount, command []string) []string {
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
		if m.readOnly {
			mode = "ro"
		}
		argv = append(argv, m.source, m.target, mode)
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
	// Not nsenter's --wd: it opens the directory before it enters, where it may be another one.
	argv = append(argv, "--", "/bin/sh", "-c", `cd "$0" && exec "$@"`, workdir)
	return append(argv, command...)
}
