package volume

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// SharedMountPoint is an empty directory of the machine on which containers mount, each in its own namespace. All
// agents on the machine share it, and the last one to stop removes it. An earlier removal would unmount it in the
// containers of the others: since Linux 3.19, rmdir detaches mounts in other namespaces.
type SharedMountPoint struct {
	path string
	held *os.File
}

// ShareMountPoint creates path unless it exists.
func ShareMountPoint(path string) (*SharedMountPoint, error) {
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
	return &SharedMountPoint{path: path, held: held}, nil
}

// Release removes the directory if it is empty and no other agent uses it.
func (m *SharedMountPoint) Release() error {
	if m == nil {
		return nil
	}
	defer m.held.Close()
	if syscall.Flock(int(m.held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // another agent still uses it
	}
	_ = syscall.Rmdir(m.path) // fails if the directory is not empty, and then it belongs to another program
	return nil
}
