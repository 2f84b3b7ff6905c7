package api

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/access"
)

// Limits on the bytes of pending answers: the server holds an answer until its caller has read it, and callers may read
// slowly. Answers of up to smallAnswer bytes do not count, because the number of calls is limited too.
const (
	smallAnswer  = 64 << 10
	maxOfCaller  = 16 << 20
	maxOfAll     = 64 << 20
	retryPending = time.Second
)

// pending counts the bytes of the answers that callers have not read yet.
type pending struct {
	// encoding has a token for each answer that is being encoded, which takes memory of its own.
	encoding chan struct{}

	mu       sync.Mutex // guards the fields below
	bytes    int
	byCaller map[string]int
}

func newPending() *pending {
	return &pending{encoding: make(chan struct{}, runtime.GOMAXPROCS(0)), byCaller: map[string]int{}}
}

// hold counts an answer until release, or returns an error if it exceeds a limit. An answer that alone exceeds a limit
// is allowed while no other counts.
func (p *pending) hold(caller string, size int) (release func(), err error) {
	if size <= smallAnswer {
		return func() {}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if own := p.byCaller[caller]; own > 0 && own+size > maxOfCaller {
		why := fmt.Sprintf(
			"%q has %d bytes of other answers to read first, and this answer has %d", shorten(caller), own,
			size,
		)
		return nil, &access.ThrottledError{After: retryPending, Why: why}
	}
	if p.bytes > 0 && p.bytes+size > maxOfAll {
		why := fmt.Sprintf("callers are reading %d bytes of answers, and this answer has %d", p.bytes, size)
		return nil, &problem{Kind: kindUnavailable, Detail: why}
	}
	p.bytes += size
	p.byCaller[caller] += size
	return func() { p.release(caller, size) }, nil
}

// Used returns how much of the bytes for answers that callers have not read yet is in use, from 0 to 1.
func (w *answers) Used() float64 {
	w.pending.mu.Lock()
	defer w.pending.mu.Unlock()
	return float64(w.pending.bytes) / maxOfAll
}

func (p *pending) release(caller string, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes -= size
	if p.byCaller[caller] -= size; p.byCaller[caller] == 0 {
		delete(p.byCaller, caller)
	}
}

// encode encodes an answer as JSON, a few at a time. It ignores the end of the call: a caller whose body came too
// slowly must get its answer too.
func (p *pending) encode(body any) ([]byte, error) {
	p.encoding <- struct{}{}
	defer func() { <-p.encoding }()
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the answer: %w", err)
	}
	return append(text, '\n'), nil
}
