package kit

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

// ErrLocked means that another process holds a lock.
var ErrLocked = errors.New("locked by another process")

// Lock is an advisory lock on a file. The kernel releases it when its holder ends, even by a kill.
type Lock struct{ file *os.File }

// TryLock locks a file, which it creates, or returns ErrLocked.
func TryLock(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return &Lock{file: file}, nil
}

// WaitLock locks a file as soon as it is free.
func WaitLock(ctx context.Context, path string) (*Lock, error) {
	for {
		lock, err := TryLock(path)
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, fmt.Errorf("waiting for the lock of %s: %w", path, err)
		}
	}
}

// File is the locked file, which its holder may write to.
func (l *Lock) File() *os.File { return l.file }

// Release releases the lock. The file stays: without it, two processes could lock two files of one name.
func (l *Lock) Release() { l.file.Close() }

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

// exists reports whether path exists.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
