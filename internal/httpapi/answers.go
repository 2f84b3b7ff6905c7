package httpapi

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
)

// Bounds on the bytes of answers that are on their way: an answer is held until its caller has read it, and callers may read slowly.
// Answers of up to smallAnswer are not counted, since calls under way are.
const (
	smallAnswer    = 64 << 10
	answersOfOne   = 16 << 20
	answersOfAll   = 64 << 20
	answersRetryIn = time.Second
)

// answers counts the bytes of answers that are on their way.
type answers struct {
	// encoding has a token for each answer that is being encoded, which takes memory of its own.
	encoding chan struct{}

	mu       sync.Mutex // guards the rest
	held     int
	byCaller map[string]int
}

func newAnswers() *answers {
	return &answers{encoding: make(chan struct{}, runtime.GOMAXPROCS(0)), byCaller: map[string]int{}}
}

// hold counts an answer until release; an error says that there is no room for it. An answer that is larger than all room is held where
// nothing else is.
func (a *answers) hold(caller string, size int) (release func(), err error) {
	if size <= smallAnswer {
		return func() {}, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if own := a.byCaller[caller]; own > 0 && own+size > answersOfOne {
		return nil, &access.ThrottledError{After: answersRetryIn, Why: fmt.Sprintf("%q has not read %d bytes of other answers, and this one has %d", shorten(caller), own, size)}
	}
	if a.held > 0 && a.held+size > answersOfAll {
		return nil, &problem{kind: unavailable, detail: fmt.Sprintf("%d bytes of answers are being read, and this one has %d", a.held, size)}
	}
	a.held += size
	a.byCaller[caller] += size
	return func() { a.release(caller, size) }, nil
}

func (a *answers) release(caller string, size int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held -= size
	if a.byCaller[caller] -= size; a.byCaller[caller] == 0 {
		delete(a.byCaller, caller)
	}
}

// encode makes the JSON of an answer when it is its turn. It does not ask whether the call is over: who sent too slowly is told so.
func (a *answers) encode(body any) ([]byte, error) {
	a.encoding <- struct{}{}
	defer func() { <-a.encoding }()
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the answer: %w", err)
	}
	return append(text, '\n'), nil
}

// answersKey is where a call's context has the answers under way.
const answersKey = "heliostat/answers"

// countAnswers lets what is written count, and tells the caller where nothing could be written.
func (s *server) countAnswers(c *gin.Context) {
	c.Set(answersKey, s.answers)
	c.Next()
	if failed := c.Errors.Last(); failed != nil && !c.Writer.Written() {
		s.fail(c, failed.Err)
	}
}

// write encodes the whole body before the first byte goes out: a value that cannot be encoded must not look like a
// success that was cut off. What cannot be written is left to countAnswers.
func write(c *gin.Context, status int, contentType string, body any) {
	under := c.MustGet(answersKey).(*answers)
	text, err := under.encode(body)
	var release func()
	if err == nil {
		release, err = under.hold(callerOf(c).Name, len(text))
	}
	if err != nil {
		c.Abort()
		_ = c.Error(err) // it returns what it was given
		return
	}
	defer release()
	c.Data(status, contentType, text)
}
