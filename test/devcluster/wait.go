package devcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

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

// poll calls ready until it returns nil. If ctx ends first, it returns the last error.
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

// awaitingPause is the time between two messages of Awaiting.
const awaitingPause = 15 * time.Second

// AwaitingPrefix begins every line of Awaiting.
const AwaitingPrefix = "waiting for "

func awaiting(out io.Writer, what string) (done func()) {
	ended, began := make(chan struct{}), time.Now()
	var reporting sync.WaitGroup
	reporting.Go(func() {
		ticker := time.NewTicker(awaitingPause)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				fmt.Fprintf(out, "%s%s, %.0f s so far\n", AwaitingPrefix, what, time.Since(began).Seconds())
			}
		}
	})
	return func() {
		close(ended)
		reporting.Wait()
	}
}

// exists reports whether path exists.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
