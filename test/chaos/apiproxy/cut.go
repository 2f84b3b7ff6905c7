package apiproxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Cut is a way in which a client is cut off from the API server. All its watches end when the cut begins.
type Cut string

const (
	// Refuse breaks the connection of each request.
	Refuse Cut = "refuse"
	// Hold keeps requests until the cut ends. Writes are then passed on even if the client has given them up, as a
	// network may do that is slow.
	Hold Cut = "hold"
	// Deaf passes writes on, and breaks the connection in place of their answers. Reads are refused.
	Deaf Cut = "deaf"
)

// Cuts are all of them.
var Cuts = []Cut{Refuse, Hold, Deaf}

// heldFor is how long a write that was held may take once it is passed on.
const heldFor = 10 * time.Second

// cut is a cut that lasts until over is closed.
type cut struct {
	kind Cut
	over chan struct{}
	held atomic.Int32 // the writes that are held, or were
}

// cut begins a cut, and returns how to end it. The caller holds mu, then and at the end.
func (p *Proxy) cut(id int, kind Cut) (end func()) {
	c := &cut{kind: kind, over: make(chan struct{})}
	p.cuts[id] = c
	p.endWatches()
	return func() {
		delete(p.cuts, id)
		close(c.over)
	}
}

// cutting returns a cut that lasts, or nil.
func (p *Proxy) cutting() *cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.cuts {
		return c
	}
	return nil
}

// cutOff returns the request that is passed on, when it is; nil if it is refused.
func (p *Proxy) cutOff(r *http.Request) *http.Request {
	c := p.cutting()
	reads := r.Method == http.MethodGet
	switch {
	case c == nil:
		return r
	case c.kind == Hold && !reads:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil
		}
		c.held.Add(1)
		<-c.over
		// The request ends with the proxy's own time, and not with the client's connection.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), heldFor)
		time.AfterFunc(heldFor, cancel)
		r = r.WithContext(ctx)
		r.Body = io.NopCloser(bytes.NewReader(body))
		return r
	case c.kind == Hold:
		select {
		case <-c.over:
			return r
		case <-r.Context().Done():
			return nil
		}
	case c.kind == Deaf && !reads:
		return r
	}
	return nil
}

// pass passes a request on. The answer is lost if the client cannot hear then.
func (p *Proxy) pass(forward http.Handler, w http.ResponseWriter, r *http.Request) {
	if c := p.cutting(); c == nil || c.kind != Deaf {
		forward.ServeHTTP(w, r)
		return
	}
	forward.ServeHTTP(lost{http.Header{}}, r)
	panic(http.ErrAbortHandler)
}

// lost is an answer that nobody hears.
type lost struct{ header http.Header }

func (l lost) Header() http.Header { return l.header }

func (l lost) Write(text []byte) (int, error) { return len(text), nil }

func (l lost) WriteHeader(int) {}
