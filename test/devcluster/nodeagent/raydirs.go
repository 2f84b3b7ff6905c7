package nodeagent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// rayTempDir is where Ray and KubeRay expect Ray's session directory.
const rayTempDir = "/tmp/ray"

// maxRayDir is the longest name of a directory below which raydirs are made. Ray puts Unix sockets at
// <temp dir>/session_<40 characters>/sockets/plasma_store, and a socket's path has at most 107 bytes. That leaves 45
// for the temp dir, of which the pod's number takes 5.
const maxRayDir = 40

// rayDirs makes the pods' Ray temp dirs. They have short names outside the pod's own directory and are the same
// inside and outside the pod, so that a driver on the machine finds the sockets of a raylet in a pod.
type rayDirs struct {
	parent string
	link   string // points to a parent that lies elsewhere; "" where it does not

	mu   sync.Mutex // guards next
	next int
}

func newRayDirs(dir string) (*rayDirs, error) {
	parent := filepath.Join(dir, "r")
	if len(parent) > maxRayDir {
		short, err := os.MkdirTemp("/tmp", "hs")
		if err == nil {
			err = os.Symlink(short, parent) // tells whoever cleans up after a killed cluster
		}
		if err != nil {
			return nil, fmt.Errorf("making a directory for Ray's sessions: %w", err)
		}
		return &rayDirs{parent: short, link: parent}, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("making a directory for Ray's sessions: %w", err)
	}
	return &rayDirs{parent: parent}, nil
}

// make returns a new, empty directory.
func (d *rayDirs) make() (string, error) {
	d.mu.Lock()
	d.next++
	dir := filepath.Join(d.parent, strconv.Itoa(d.next))
	d.mu.Unlock()
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("emptying %s: %w", dir, err)
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return "", fmt.Errorf("making a Ray temp dir: %w", err)
	}
	return dir, nil
}

func (d *rayDirs) remove() error {
	err := os.RemoveAll(d.parent)
	if d.link == "" {
		return err
	}
	return errors.Join(err, os.RemoveAll(d.link))
}

// sharedMountPoint is an empty directory of the machine over which containers mount, each in its own namespace. All
// agents on the machine share it, and the last one to leave removes it. Removing it earlier would take the mounts
// away from the others' containers: since Linux 3.19 rmdir detaches mounts in other namespaces.
type sharedMountPoint struct {
	path string
	held *os.File
}

// shareMountPoint creates path where it does not exist. One that exists and is not empty belongs to somebody else
// and is left alone for good.
func shareMountPoint(path string) (*sharedMountPoint, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, fmt.Errorf("making mount point %s: %w", path, err)
	}
	held, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening mount point %s: %w", path, err)
	}
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_SH); err != nil {
		return nil, errors.Join(fmt.Errorf("sharing mount point %s: %w", path, err), held.Close())
	}
	return &sharedMountPoint{path: path, held: held}, nil
}

// release removes the directory if it is empty and nobody else holds it.
func (m *sharedMountPoint) release() error {
	if m == nil {
		return nil
	}
	defer m.held.Close()
	if syscall.Flock(int(m.held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // somebody else still uses it
	}
	_ = syscall.Rmdir(m.path) // refused where it is not empty, and then it is not ours
	return nil
}
