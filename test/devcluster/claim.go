package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"heliostat.dev/heliostat/test/devcluster/kit"
)

// claim reserves a directory and a block of loopback addresses for one cluster. The kernel frees both when the process
// ends, so a claim never outlives its cluster.
type claim struct {
	dir   string
	lock  *kit.Lock
	block *block
}

// claimMachine claims dir and a block of addresses. An empty dir means a new one below runs. It removes what killed
// clusters left in runs.
func claimMachine(ctx context.Context, runs, dir string) (*claim, error) {
	if err := os.MkdirAll(runs, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory for clusters: %w", err)
	}
	// A directory without a lock looks abandoned, so nobody may look between its creation and its lock.
	one, err := kit.WaitLock(ctx, filepath.Join(runs, ".lock"))
	if err != nil {
		return nil, err
	}
	defer one.Release()
	sweep(runs)
	dir, lock, err := claimDir(runs, dir)
	if err != nil {
		return nil, err
	}
	b, err := claimBlock()
	if err != nil {
		lock.Release()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &claim{dir: dir, lock: lock, block: b}, nil
}

// release frees the claim. The caller removes the directory's content.
func (c *claim) release() {
	c.block.release()
	c.lock.Release()
}

// ownerFile is the lock file of a cluster's directory. It contains the owner's process ID.
const ownerFile = "owner"

// claimDir locks an empty or new directory.
func claimDir(runs, dir string) (string, *kit.Lock, error) {
	var err error
	if dir == "" {
		dir, err = newDir(runs)
	} else if dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", nil, fmt.Errorf("creating the cluster's directory: %w", err)
	}
	lock, err := kit.TryLock(filepath.Join(dir, ownerFile))
	if errors.Is(err, kit.ErrLocked) {
		return "", nil, fmt.Errorf("another cluster runs in %s (process %d)", dir, Owner(dir))
	}
	if err != nil {
		return "", nil, fmt.Errorf("claiming %s: %w", dir, err)
	}
	if err := prepareDir(dir, lock.File()); err != nil {
		lock.Release()
		return "", nil, fmt.Errorf("claiming %s: %w", dir, err)
	}
	return dir, lock, nil
}

// newDir creates a directory below runs. Its name is short because the length of Unix socket paths is limited.
func newDir(runs string) (string, error) {
	for n := 1; ; n++ {
		dir := filepath.Join(runs, "c"+strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}

// prepareDir checks that the directory has no foreign files, which would be lost with it, and writes its owner.
func prepareDir(dir string, owner *os.File) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != ownerFile {
			return fmt.Errorf("it is not empty: %s does not belong to a cluster", entry.Name())
		}
	}
	return writeOwner(owner)
}

// writeOwner writes this process's ID to the owner file.
func writeOwner(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return err
}

// Owner returns the ID of the process that runs a cluster in dir, or 0.
func Owner(dir string) int {
	file, err := os.Open(filepath.Join(dir, ownerFile))
	if err != nil {
		return 0
	}
	defer file.Close()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return 0
	}
	data, err := os.ReadFile(file.Name())
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}

// sweep removes the directories of clusters whose process and janitor were both killed. It ignores errors: the next
// cluster tries again.
func sweep(runs string) {
	owners, _ := filepath.Glob(filepath.Join(runs, "*", ownerFile))
	for _, owner := range owners {
		lock, err := kit.TryLock(owner)
		if err != nil {
			continue
		}
		os.RemoveAll(filepath.Dir(owner))
		lock.Release()
	}
}

// block is one cluster's share of the loopback network: 127.64.n.1 for the control plane, 127.65.n.0/24 for nodes and
// pods. An abstract socket reserves it: like the addresses it is machine-wide, and it ends with its process.
type block struct {
	number int
	socket net.Listener
}

// maxBlocks bounds how many clusters run on one machine.
const maxBlocks = 256

// claimBlock reserves the first free block.
func claimBlock() (*block, error) {
	for n := range maxBlocks {
		socket, err := net.Listen("unix", fmt.Sprintf("@heliostat-devcluster-%d", n))
		if err == nil {
			return &block{number: n, socket: socket}, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("reserving loopback addresses: %w", err)
		}
	}
	return nil, fmt.Errorf("reserving loopback addresses: all %d blocks are in use", maxBlocks)
}

// host is the control plane's address.
func (b *block) host() string { return fmt.Sprintf("127.64.%d.1", b.number) }

// podCIDR is the block of the nodes' and pods' addresses.
func (b *block) podCIDR() string { return fmt.Sprintf("127.65.%d.0/24", b.number) }

// publicPort returns a port that is free at all addresses, and that no cluster of another block chooses. A part that
// listens on all addresses fails if the port is in use at one of them.
func (b *block) publicPort(first int) (int, error) {
	for p := first + b.number; p < first+4*maxBlocks; p += maxBlocks {
		listener, err := net.Listen("tcp", ":"+strconv.Itoa(p))
		if err == nil {
			return p, listener.Close()
		}
	}
	return 0, fmt.Errorf("finding a port from %d on that is free at all addresses: none is free", first)
}

// release frees the block.
func (b *block) release() { b.socket.Close() }

// port returns a free port of the control plane's address: the usual one, or, if another process uses that at all
// addresses, one below the ephemeral range, so that no later process gets it by chance.
func (b *block) port(usual int) (int, error) {
	const lowest, ephemeral = 20000, 32768
	candidates := []int{usual}
	for p := lowest + usual%1000; p < ephemeral; p += 1000 {
		candidates = append(candidates, p)
	}
	for _, p := range candidates {
		listener, err := net.Listen("tcp", net.JoinHostPort(b.host(), strconv.Itoa(p)))
		if err == nil {
			return p, listener.Close()
		}
	}
	return 0, fmt.Errorf("finding a free port on %s: all of %v are in use", b.host(), candidates)
}
