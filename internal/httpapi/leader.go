package httpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
)

// Leadership says which of several replicas decides. Only that one knows what is decided, so the others pass calls on to it.
type Leadership interface {
	// Leads reports whether this process decides.
	Leads() bool
	// Settled reports, of a process that leads, whether it has looked at every RayCluster that there is. Until then its lists
	// are not whole.
	Settled() bool
	// Leader returns the IP address and port where the process that decides is called, "" when it cannot be; false where
	// nobody is known to decide.
	Leader() (address string, known bool)
}

// passedHeader marks a call that a replica has passed on. It gives no rights; it keeps a call from going round.
const passedHeader = "X-Heliostat-Passed-On"

// Times of calls that are passed on.
const (
	leaderDialTimeout = 2 * time.Second
	leaderTLSTimeout  = 3 * time.Second
	// leaderPings finds out, on a connection where nothing comes, whether there is still somebody.
	leaderPings = 5 * time.Second
	// leaderWatch is how often a call under way looks whether who answers it still leads.
	leaderWatch = 500 * time.Millisecond
)

// Why a call that was passed on is given up.
var (
	errLeaderGone = errors.New("the replica to which the call was passed on does not decide any more")
	errLeaderSlow = errors.New("the replica that decides does not answer")
)

// relay passes calls on to the replica that decides.
type relay struct {
	scheme    string
	transport http.RoundTripper
	// patience is how long an answer may take beyond what the call itself waits for, and slack how long its writing; watch is
	// leaderWatch.
	patience, slack, watch time.Duration

	// closed ends when this server does, and with it streams.
	closed chan struct{}
	close  func()
}

// newRelay speaks TLS where peers is not nil.
func newRelay(peers *tls.Config) *relay {
	closed := make(chan struct{})
	r := &relay{scheme: "http", patience: writeTimeout, slack: writeTimeout / 3, watch: leaderWatch, closed: closed, close: sync.OnceFunc(func() { close(closed) })}
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: leaderDialTimeout}).DialContext,
		TLSHandshakeTimeout: leaderTLSTimeout, IdleConnTimeout: idleTimeout / 2, MaxIdleConnsPerHost: maxAtOnce,
		DisableCompression: true, MaxResponseHeaderBytes: maxHeaderRead,
	}
	if peers != nil {
		r.scheme, transport.TLSClientConfig, transport.ForceAttemptHTTP2 = "https", peers, true
		transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: leaderPings, PingTimeout: leaderPings}
	}
	r.transport = transport
	return r
}

// passOn answers calls of /v1 through the replica that decides, where this one does not. What says how this process itself is
// (probes, metrics), the contract and the page are the same everywhere. It comes after guard: who may not call is refused
// here, at its own address, and the leader asks again.
func (s *server) passOn(c *gin.Context) {
	if s.Leadership == nil || s.Leadership.Leads() || !strings.HasPrefix(c.FullPath(), "/v1/") {
		return
	}
	address, err := s.leaderFor(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	body, err := readAll(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.relayTo(c, address, body)
	c.Abort()
}

// leaderFor is where the call is passed on to, or why it is not.
func (s *server) leaderFor(c *gin.Context) (string, error) {
	address, known := s.Leadership.Leader()
	switch {
	case c.GetHeader(passedHeader) != "":
		return "", &problem{kind: unavailable, detail: "another replica took this one for the one that decides, and it is not; try again"}
	case !known:
		return "", &problem{kind: unavailable, detail: "no replica decides now; one takes over within seconds"}
	case address == "":
		return "", &problem{kind: unavailable, detail: "another replica decides, and calls cannot be passed on to it; call it at its own address (the Lease names it)"}
	case s.Access != nil && c.GetHeader("Authorization") == "" && c.GetHeader(access.ForwardedHeader) == "":
		// The caller proved by TLS who it is, to this replica alone. To tell the other one would need a header that it believes.
		c.Header("Connection", "close")
		return "", &problem{kind: notLeader, detail: "another replica decides, and a client certificate cannot be passed on to it; try again over a new connection, or call with a token"}
	}
	return address, nil
}

// relayTo makes the call at address and answers with what comes back.
func (s *server) relayTo(c *gin.Context, address string, body []byte) {
	ctx, cancel := context.WithCancelCause(c.Request.Context())
	defer cancel(nil)
	patience := s.relay.patience
	if wait, err := readWait(c.Query("wait")); err == nil {
		patience += wait // one that is wrong is told by the leader
	}
	timer := time.AfterFunc(patience, func() { cancel(errLeaderSlow) })
	defer timer.Stop()
	answer := &relayed{ResponseWriter: c.Writer, stream: stream{c: c, control: http.NewResponseController(c.Writer), patience: eventPatience}}
	go s.whileLeads(ctx, address, &answer.streams, cancel)
	if err := answer.stream.limit(time.Now().Add(patience + s.relay.slack)); err != nil {
		s.fail(c, fmt.Errorf("passing a call on: %w", err))
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = s.relay.scheme, address
			r.Out.Host = r.In.Host // what a browser's Origin is compared with
			r.Out.Header.Set(passedHeader, "1")
		},
		Transport: s.relay.transport, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ModifyResponse: func(r *http.Response) error {
			for name := range r.Header {
				c.Writer.Header().Del(name) // the leader has set it too
			}
			if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "text/event-stream" {
				timer.Stop()
				answer.streams.Store(true)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { s.failRelay(c, ctx, address, err) },
	}
	request := c.Request.WithContext(ctx)
	request.Body, request.ContentLength, request.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	proxy.ServeHTTP(answer, request)
}

// whileLeads gives a call up when another replica, or none, leads: one that hangs would keep its callers. Streams end with
// this server too, which would wait for them.
func (s *server) whileLeads(ctx context.Context, address string, streams *atomic.Bool, giveUp context.CancelCauseFunc) {
	tick := time.NewTicker(s.relay.watch)
	defer tick.Stop()
	closed := s.relay.closed
	for {
		select {
		case <-ctx.Done():
			return
		case <-closed:
			if streams.Load() {
				giveUp(http.ErrServerClosed)
				return
			}
			closed = nil // an answer that is no stream ends by itself
		case <-tick.C:
			if now, known := s.Leadership.Leader(); !known || now != address {
				giveUp(errLeaderGone)
				return
			}
		}
	}
}

// failRelay says why there is no answer of the leader.
func (s *server) failRelay(c *gin.Context, ctx context.Context, address string, err error) {
	const perhaps = "; what was asked may still have happened"
	cause := context.Cause(ctx)
	switch {
	case ending(c):
		s.fail(c, errEnding)
	case c.Request.Context().Err() != nil:
		c.Abort() // nobody waits for an answer
	case errors.Is(cause, errLeaderSlow):
		s.fail(c, &problem{kind: timedOut, detail: cause.Error() + perhaps})
	case errors.Is(cause, errLeaderGone):
		s.fail(c, &problem{kind: unavailable, detail: cause.Error() + perhaps})
	default:
		s.log.Warn("REST call cannot be passed on", "leader", address, "path", c.Request.URL.Path, "error", err)
		s.fail(c, &problem{kind: unavailable, detail: "the replica that decides cannot be reached now" + perhaps})
	}
}

// relayed writes an answer of the leader. What is a stream there is one here: with a limit for each write, and none between.
type relayed struct {
	http.ResponseWriter
	stream  stream
	streams atomic.Bool
}

func (r *relayed) Write(text []byte) (int, error) {
	if r.streams.Load() {
		if err := r.stream.limit(time.Now().Add(r.stream.patience)); err != nil {
			return 0, err
		}
	}
	return r.ResponseWriter.Write(text)
}

// FlushError is called after each write, and once before.
func (r *relayed) FlushError() error {
	err := r.stream.control.Flush()
	if r.streams.Load() {
		err = errors.Join(err, r.stream.limit(time.Time{}))
	}
	return err
}

// notWhole says that lists lack something for a moment; nil when they do not.
func (s *server) notWhole() error {
	if s.Leadership == nil || s.Leadership.Settled() {
		return nil
	}
	return &problem{kind: unavailable, detail: "this replica decides since a moment ago, and has not looked at every RayCluster yet"}
}
