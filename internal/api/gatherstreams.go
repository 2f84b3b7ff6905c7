package api

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// gatherStreams answers a stream of all RayClusters with the streams of all shards. It ends when one of them ends, or
// when the shards change: its reader starts again, and gets the current state of everything.
func (r *relay) gatherStreams(c *gin.Context) {
	addresses, ok := r.others(c)
	if !ok || len(addresses) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(c.Request.Context())
	defer cancel()
	var streams []io.ReadCloser
	defer func() {
		for _, s := range streams {
			_ = s.Close()
		}
	}()
	for _, address := range addresses {
		response, err := r.open(ctx, c.Request, address)
		if err != nil {
			r.Log.Warn("a shard did not open a stream", "error", err)
			r.unavailable(c, "a shard does not answer now, so the stream would lack its RayClusters; try again")
			return
		}
		streams = append(streams, response.Body)
		if response.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(response.Body, maxProblem)) // the status says what matters
			c.Data(response.StatusCode, response.Header.Get("Content-Type"), text)
			c.Abort()
			return
		}
	}
	out := &joint{ResponseWriter: c.Writer, control: http.NewResponseController(c.Writer), begun: make(chan struct{})}
	c.Request, c.Writer = c.Request.WithContext(ctx), out
	var copies sync.WaitGroup
	for _, s := range streams {
		copies.Go(func() {
			defer cancel()
			out.copy(ctx, s)
		})
	}
	copies.Go(func() {
		defer cancel()
		r.whileSame(ctx, addresses)
	})
	c.Next()
	cancel()
	copies.Wait()
}

// maxProblem bounds a problem document.
const maxProblem = 64 << 10

// open opens the stream of one shard. Its answer begins at once; the stream itself has no limit.
func (r *relay) open(ctx context.Context, call *http.Request, address string) (*http.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(writeTimeout, cancel)
	defer timer.Stop()
	return r.ask(ctx, call, address)
}

// whileSame returns when the shards are not those at the addresses any more, when the relay is closed, or with ctx.
func (r *relay) whileSame(ctx context.Context, addresses []string) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.closed:
			return
		case <-tick.C:
			if now, complete := r.Division.Addresses(); !complete || !slices.Equal(now, addresses) {
				return
			}
		}
	}
}

// joint writes the events of several streams into one answer. Each write is whole events, with a deadline of its own.
type joint struct {
	gin.ResponseWriter
	control *http.ResponseController
	begun   chan struct{} // closed with the header, which the stream of this replica writes
	once    sync.Once
	mu      sync.Mutex
}

func (w *joint) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	if status == http.StatusOK {
		w.once.Do(func() { close(w.begun) })
	}
}

func (w *joint) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.control.SetWriteDeadline(time.Now().Add(streamTimeout)) // a writer without deadlines has no limit
	n, err := w.ResponseWriter.Write(text)
	if err == nil {
		err = w.control.Flush()
	}
	_ = w.control.SetWriteDeadline(time.Time{})
	return n, err
}

// SetWriteDeadline does nothing: each write has its own.
func (w *joint) SetWriteDeadline(time.Time) error { return nil }

// FlushError does nothing: each write is flushed.
func (w *joint) FlushError() error { return nil }

// copy passes whole events on until the stream or ctx ends.
func (w *joint) copy(ctx context.Context, from io.Reader) {
	select {
	case <-w.begun:
	case <-ctx.Done():
		return
	}
	lines, event := bufio.NewReader(from), bytes.Buffer{}
	for {
		line, err := lines.ReadBytes('\n')
		event.Write(line)
		if len(line) == 1 { // an empty line ends an event
			if _, err := w.Write(event.Bytes()); err != nil {
				return
			}
			event.Reset()
		}
		if err != nil || event.Len() > maxList {
			return
		}
	}
}
