package api

import (
	"bytes"
	"context"
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
)

// Leadership says which of several replicas leads. Only the leader knows the decisions, so the others pass calls on to
// it.
type Leadership interface {
	// Leads reports whether this process leads.
	Leads() bool
	// Settled reports whether a process that leads has looked at every RayCluster. Until then its lists are incomplete.
	Settled() bool
	// Leader returns the IP address and port of the leader: "" if its address is unknown, false if there is no leader.
	Leader() (address string, known bool)
}

// passedHeader marks a call that a replica has passed on. It grants no rights; it stops calls from going in circles.
const passedHeader = "X-Heliostat-Passed-On"

const (
	dialTimeout      = 2 * time.Second
	handshakeTimeout = 3 * time.Second
	// pingInterval is how soon an idle HTTP/2 connection is tested, and how long the answer may take.
	pingInterval = 5 * time.Second
	// checkInterval is how often a running call checks whether its replica still leads.
	checkInterval = 500 * time.Millisecond
)

// The causes of calls that are canceled.
var (
	errLeaderGone = errors.New("the replica that received the call does not lead any more")
	errLeaderSlow = errors.New("the leader does not answer")
)

// relay passes calls on to the leader.
type relay struct {
	Config
	answers   *answers
	scheme    string
	transport http.RoundTripper
	// gathering has a token for each list that is gathered from shards.
	gathering chan struct{}

	// closed is closed by Close, which ends streams.
	closed chan struct{}
	close  func()
}

func newRelay(config Config, answers *answers) *relay {
	closed := make(chan struct{})
	r := &relay{
		Config: config, answers: answers, scheme: "http", gathering: make(chan struct{}, maxGathered), closed: closed,
		close: sync.OnceFunc(func() { close(closed) }),
	}
	transport := &http.Transport{
		DialContext:         config.dialLeader,
		TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: idleTimeout / 2,
		MaxIdleConnsPerHost: maxCalls,
		DisableCompression:  true, MaxResponseHeaderBytes: maxHeader,
	}
	if config.dialLeader == nil {
		transport.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	if config.Peers != nil {
		r.scheme, transport.TLSClientConfig, transport.ForceAttemptHTTP2 = "https", config.Peers, true
		transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: pingInterval}
	}
	r.transport = transport
	return r
}

// Close ends all streams from the leader.
func (r *relay) Close() { r.close() }

// PassOn answers calls of /v1 through the leader, unless this replica leads. Every replica answers probes, metrics, the
// contract and the page itself. PassOn runs after the guard: this replica refuses callers at its own address, and the
// leader checks them again.
func (r *relay) PassOn(c *gin.Context) {
	if r.Division != nil {
		r.divide(c)
		return
	}
	if r.Leadership == nil || r.Leadership.Leads() || !strings.HasPrefix(c.FullPath(), "/v1/") {
		return
	}
	r.passTo(c, r.Leadership.Leader, "no replica leads now; one takes over within seconds")
}

// passTo answers a call through the replica that decides about it. where returns its address, "" if that is unknown;
// none is the reason if there is no such replica.
func (r *relay) passTo(c *gin.Context, where func() (address string, known bool), none string) {
	address, known := where()
	if !known {
		r.unavailable(c, none)
		return
	}
	if err := r.mayPass(c, address); err != nil {
		r.answers.Fail(c, err)
		return
	}
	text, err := readBody(c.Writer, c.Request)
	if err != nil {
		r.answers.Fail(c, err)
		return
	}
	r.call(c, address, text, func() bool {
		now, known := where()
		return known && now == address
	})
	c.Abort()
}

// mayPass returns why a call cannot be passed on to the replica at an address, or nil.
func (r *relay) mayPass(c *gin.Context, address string) error {
	switch {
	case c.GetHeader(passedHeader) != "":
		return &problem{Kind: kindUnavailable, Detail: "another replica passed this call on, but this replica does " +
			"not decide about it; try again"}
	case address == "":
		return &problem{Kind: kindUnavailable, Detail: "another replica decides, but its Lease has no address to " +
			"pass calls on to; call that replica directly (the Lease names it)"}
	}
	return nil
}

func (r *relay) unavailable(c *gin.Context, why string) {
	r.answers.Fail(c, &problem{Kind: kindUnavailable, Detail: why})
}

// call sends the call to address and writes the answer. right reports whether that is still the replica to call.
func (r *relay) call(c *gin.Context, address string, text []byte, right func() bool) {
	ctx, cancel := context.WithCancelCause(c.Request.Context())
	defer cancel(nil)
	timer := time.AfterFunc(writeTimeout, func() { cancel(errLeaderSlow) })
	defer timer.Stop()
	out := &relayed{ResponseWriter: c.Writer, stream: newAnswerStream(c.Writer, streamTimeout)}
	go r.watchLeader(ctx, right, &out.streams, cancel)
	if err := out.stream.SetDeadline(time.Now().Add(writeTimeout + writeTimeout/3)); err != nil {
		r.answers.Fail(c, fmt.Errorf("passing a call on: %w", err))
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = r.scheme, address
			p.Out.Host = p.In.Host // the leader compares it with a browser's Origin
			p.Out.Header.Set(passedHeader, "1")
		},
		Transport: r.transport, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(r.Log.Handler(), slog.LevelDebug),
		ModifyResponse: func(response *http.Response) error {
			for name := range response.Header {
				c.Writer.Header().Del(name) // the leader has set it too
			}
			if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind == "text/event-stream" {
				timer.Stop()
				out.streams.Store(true)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { r.fail(c, ctx, address, err) },
	}
	request := c.Request.WithContext(ctx)
	request.Body = io.NopCloser(bytes.NewReader(text))
	request.ContentLength, request.TransferEncoding = int64(len(text)), nil
	proxy.ServeHTTP(out, request)
}

// watchLeader cancels a call when its replica no longer leads: a replica that hangs would never answer. Close ends
// streams, because the shutdown of the server would wait for them.
func (r *relay) watchLeader(
	ctx context.Context, right func() bool, streams *atomic.Bool, cancel context.CancelCauseFunc,
) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	closed := r.closed
	for {
		select {
		case <-ctx.Done():
			return
		case <-closed:
			if streams.Load() {
				cancel(http.ErrServerClosed)
				return
			}
			closed = nil // other answers end by themselves
		case <-tick.C:
			if !right() {
				cancel(errLeaderGone)
				return
			}
		}
	}
}

// fail answers with the reason why the leader did not.
func (r *relay) fail(c *gin.Context, ctx context.Context, address string, err error) {
	const uncertain = "; the call may still have taken effect"
	cause := context.Cause(ctx)
	switch {
	case shuttingDown(c.Request.Context()):
		r.answers.Fail(c, errShutdown)
	case c.Request.Context().Err() != nil:
		c.Abort() // the caller is gone
	case errors.Is(cause, errLeaderSlow):
		r.answers.Fail(c, &problem{Kind: kindTimedOut, Detail: cause.Error() + uncertain})
	case errors.Is(cause, errLeaderGone):
		r.answers.Fail(c, &problem{Kind: kindUnavailable, Detail: cause.Error() + uncertain})
	default:
		r.Log.Warn(
			"passing a REST call on to the leader failed", "leader", address, "path", c.Request.URL.Path, "error", err,
		)
		r.answers.Fail(c, &problem{Kind: kindUnavailable, Detail: "cannot reach the leader now" + uncertain})
	}
}

// relayed writes an answer of the leader. A stream of the leader is a stream here: it has a deadline for each write,
// and none between writes.
type relayed struct {
	http.ResponseWriter
	stream  *answerStream
	streams atomic.Bool
}

func (r *relayed) Write(text []byte) (int, error) {
	if r.streams.Load() {
		if err := r.stream.Begin(); err != nil {
			return 0, err
		}
	}
	return r.ResponseWriter.Write(text)
}

// FlushError runs after each write, and once before the first.
func (r *relayed) FlushError() error {
	err := r.stream.Flush()
	if r.streams.Load() {
		err = errors.Join(err, r.stream.End())
	}
	return err
}
