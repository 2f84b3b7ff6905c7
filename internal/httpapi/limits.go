package httpapi

import (
	"fmt"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
)

// Limits of a connection. A client that sends slower than this holds a connection, not the server.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	// maxHeader and maxURI are refused with a problem document. What net/http itself refuses, without one, is larger.
	maxHeader     = 16 << 10
	maxURI        = 8 << 10
	maxHeaderRead = 4 * maxHeader
	// maxStreams bounds the calls at the same time on one connection of HTTP/2.
	maxStreams = 100
	// kubernetesTimeout bounds what a call may wait for Kubernetes; it ends well before writeTimeout.
	kubernetesTimeout = 10 * time.Second
)

// DefaultRequestsPerSecond is how many calls a second one caller may make unless told otherwise.
const DefaultRequestsPerSecond = 500

// Limits of one caller: calls at the same time, streams and long polls included, and how much of a pause may be made up
// for at once, in seconds. maxCallers bounds how many callers are remembered.
const (
	maxAtOnce    = 200
	burstSeconds = 2
	maxCallers   = 10_000
)

// pacer bounds what each caller may ask for.
type pacer struct {
	rate *access.Limiter // nil: as many as they like

	// mu guards running, the calls of each caller that are not answered yet.
	mu      sync.Mutex
	running map[string]int
}

func newPacer(perSecond float64) *pacer {
	p := &pacer{running: map[string]int{}}
	if perSecond > 0 {
		p.rate = access.NewLimiter(perSecond, perSecond*burstSeconds, maxCallers)
	}
	return p
}

// pace counts a call of the caller, until release; an error says that it is one too many.
func (s *server) pace(caller string) (release func(), err error) {
	if s.pacer.rate != nil {
		if wait := s.pacer.rate.Take(caller, s.now()); wait > 0 {
			return nil, &access.ThrottledError{After: wait, Why: fmt.Sprintf("%q calls more than %g times a second", shorten(caller), s.RequestsPerSecond)}
		}
	}
	return s.pacer.enter(caller)
}

func (p *pacer) enter(caller string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[caller] >= maxAtOnce {
		return nil, &access.ThrottledError{After: time.Second, Why: fmt.Sprintf("%q has %d calls under way", shorten(caller), maxAtOnce)}
	}
	p.running[caller]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.running[caller]--; p.running[caller] == 0 {
			delete(p.running, caller)
		}
	}, nil
}

// limitHeader refuses long addresses and headers before anything reads them.
func (s *server) limitHeader(c *gin.Context) {
	if length := len(c.Request.RequestURI); length > maxURI {
		s.fail(c, &problem{kind: uriTooLong, detail: fmt.Sprintf("the address has %d bytes, at most %d are read", length, maxURI)})
		return
	}
	size := 0
	for name, values := range c.Request.Header {
		for _, value := range values {
			size += len(name) + len(": \r\n") + len(value)
		}
	}
	if size > maxHeader {
		s.fail(c, &problem{kind: headerTooLarge, detail: fmt.Sprintf("the header has %d bytes, at most %d are read", size, maxHeader)})
	}
}
