package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// Dirs makes the directories of pods.
type Dirs struct {
	pods string
	ray  *rayDirs
}

// NewDirs makes the parents of all pods' directories below dir, an absolute path.
func NewDirs(dir string) (*Dirs, error) {
	ray, err := newRayDirs(dir)
	if err != nil {
		return nil, err
	}
	return &Dirs{pods: filepath.Join(dir, "pods"), ray: ray}, nil
}

// Remove removes the directories of all pods.
func (d *Dirs) Remove() error { return errors.Join(d.ray.remove(), os.RemoveAll(d.pods)) }

// PodDirs are the directories of one pod.
type PodDirs struct {
	Root    string // the parent of Home, Scratch and the volumes
	Home    string // HOME
	Tmp     string // TMPDIR, below Ray: programs make Unix sockets here, whose paths must be short
	Scratch string // empty; see container.sh in package sandbox
	Ray     string // the directory for Ray's sessions, see rayDirs
}

// Make makes the directories of a new pod.
func (d *Dirs) Make(pod types.UID) (PodDirs, error) {
	root := filepath.Join(d.pods, string(pod))
	p := PodDirs{
		Root:    root,
		Home:    filepath.Join(root, "home"),
		Scratch: filepath.Join(root, "scratch"),
	}
	if err := os.RemoveAll(root); err != nil {
		return p, fmt.Errorf("emptying pod directory: %w", err)
	}
	ray, err := d.ray.make()
	if err != nil {
		return p, err
	}
	p.Ray, p.Tmp = ray, filepath.Join(ray, "tmp")
	for _, dir := range []string{p.Home, p.Tmp, p.Scratch} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return p, fmt.Errorf("making pod directory: %w", err)
		}
	}
	return p, nil
}

// Remove removes the directories of the pod.
func (p PodDirs) Remove() error {
	return errors.Join(os.RemoveAll(p.Root), os.RemoveAll(p.Ray))
}
