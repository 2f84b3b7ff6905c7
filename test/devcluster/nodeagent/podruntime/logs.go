package podruntime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// followPause is the time between two reads of a log that has no more lines.
const followPause = 100 * time.Millisecond

// Logs opens the log of the container's current run, or with Previous that of the run before. It supports Tail,
// LimitBytes, Follow and Previous. Lines have no timestamps, so it ignores the other options.
func (c *Container) Logs(ctx context.Context, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	c.pod.mu.Lock()
	name, proc := c.log, c.process
	if opts.Previous {
		name, proc = c.previousLog, nil
	}
	c.pod.mu.Unlock()
	if name == "" {
		return nil, errdefs.NotFoundf("container %q has not run yet", c.spec.Name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening the log of container %s: %w", c.spec.Name, err)
	}
	if opts.Tail > 0 {
		if err := seekTail(file, opts.Tail); err != nil {
			return nil, errors.Join(fmt.Errorf("finding the last lines: %w", err), file.Close())
		}
	}
	log := &logReader{ctx: ctx, file: file}
	if opts.Follow && proc != nil {
		log.ended = proc.Done()
	}
	if opts.LimitBytes > 0 {
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(log, int64(opts.LimitBytes)), log}, nil
	}
	return log, nil
}

// logReader reads a log to its end, or, if ended is set, until the process that writes it has ended.
type logReader struct {
	ctx   context.Context
	file  *os.File
	ended <-chan struct{}
}

// Read implements io.Reader.
func (r *logReader) Read(buffer []byte) (int, error) {
	for {
		n, err := r.file.Read(buffer)
		if n > 0 || !errors.Is(err, io.EOF) || r.ended == nil {
			return n, err
		}
		select {
		case <-r.ended:
			r.ended = nil // read the rest, then stop
		case <-r.ctx.Done():
			return 0, io.EOF
		case <-time.After(followPause):
		}
	}
}

// Close implements io.Closer.
func (r *logReader) Close() error { return r.file.Close() }

// seekTail seeks to the beginning of the last n lines. It reads backwards.
func seekTail(file io.ReadSeeker, n int) error {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	const block = 8 << 10
	buffer := make([]byte, block)
	lines := 0
	for start := end; start > 0; {
		size := min(start, block)
		start -= size
		if _, err := file.Seek(start, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.ReadFull(file, buffer[:size]); err != nil {
			return err
		}
		for rest := buffer[:size]; ; {
			at := bytes.LastIndexByte(rest, '\n')
			if at < 0 {
				break
			}
			// No line follows the newline at the end of the file.
			if start+int64(at) != end-1 {
				if lines++; lines == n {
					_, err := file.Seek(start+int64(at)+1, io.SeekStart)
					return err
				}
			}
			rest = rest[:at]
		}
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// openLog opens the log of the next run.
func (c *Container) openLog() (*os.File, error) {
	c.pod.mu.Lock()
	name := fmt.Sprintf("%s_%d.log", c.spec.Name, c.restarts)
	c.pod.mu.Unlock()
	if err := os.MkdirAll(c.pod.logDir, 0o755); err != nil {
		return nil, fmt.Errorf("making the log directory: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(c.pod.logDir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	return log, nil
}
