package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// RayTempDir is where Ray and KubeRay expect Ray's session directory.
const RayTempDir = "/tmp/ray"

// maxRayDir is the length limit for the parent of the pods' Ray directories. Ray puts Unix sockets at
// <temp dir>/session_<40 characters>/sockets/plasma_store, and the path of a socket has at most 107 bytes. That leaves
// 45 for the temp dir, of which the pod's number takes 5.
const maxRayDir = 40

// rayDirs makes the directories for the sessions of Ray. Their paths are short, and equal inside and outside the pod,
// so that a driver on the machine finds the sockets of a raylet in a pod.
type rayDirs struct {
	parent string
	link   string // the symbolic link to a parent outside the agent's directory, or ""

	mu   sync.Mutex // guards next
	next int
}

func newRayDirs(dir string) (*rayDirs, error) {
	parent := filepath.Join(dir, "r")
	if len(parent) > maxRayDir {
		short, err := os.MkdirTemp("/tmp", "hs")
		if err == nil {
			err = os.Symlink(short, parent) // for the cleanup after a cluster was killed
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
