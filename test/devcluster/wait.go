package devcluster

import (
	"context"
	"fmt"
	"os"
	"strings"
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

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
