package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// CacheDir returns the directory that holds all that is built and all that runs: $HELIOSTAT_CACHE, else heliostat below
// $XDG_CACHE_HOME or ~/.cache.
func CacheDir() (string, error) {
	if dir := os.Getenv("HELIOSTAT_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	return filepath.Join(base, "heliostat"), nil
}

// errLocked says that another process holds a lock.
var errLocked = errors.New("locked by another process")

// fileLock is an advisory lock on a file. The kernel drops it when its holder ends, however that happens.
type fileLock struct{ file *os.File }

// tryLock takes the lock of a file, creating the file, or returns errLocked.
func tryLock(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return &fileLock{file: file}, nil
}

// waitLock takes the lock of a file as soon as it is free.
func waitLock(ctx context.Context, path string) (*fileLock, error) {
	for {
		lock, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return lock, err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, fmt.Errorf("waiting for the lock of %s: %w", path, err)
		}
	}
}

// release gives the lock back. The file stays: removing it would let two processes lock two files of one name.
func (l *fileLock) release() { l.file.Close() }

// sleep waits for d or until ctx ends, whose error it returns.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// poll calls ready until it returns nil, and returns its last error when ctx ends before.
func poll(ctx context.Context, every time.Duration, ready func(context.Context) error) error {
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if ended := sleep(ctx, every); ended != nil {
			return fmt.Errorf("%w (last seen: %w)", ended, err)
		}
	}
}

// exists says whether there is something at path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
