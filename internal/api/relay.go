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
	"time"

	"github.com/gin-gonic/gin"
)

// Leadership says which of several replicas leads. Only the leader knows the decisions, so the others pass calls on to
// it.
type Leadership interface {
	// Leading reports whether this process leads.
	Leading() bool
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
)

// errLeaderSlow is the cause of a call that is canceled.
var errLeaderSlow = errors.New("the leader does not answer")

// relay passes calls on to the leader.
type relay struct {
	Config
	answers   *answers
	scheme    string
	transport http.RoundTripper
}

func newRelay(config Config, answers *answers) *relay {
	r := &relay{Config: config, answers: answers, scheme: "http"}
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

// PassOn answers calls of /v1 through the leader, unless this replica leads. Every replica answers probes, metrics, the
// contract and the page itself. PassOn runs after the guard: this replica refuses callers at its own address, and the
// leader checks them again.
func (r *relay) PassOn(c *gin.Context) {
	if r.Division != nil {
		r.divide(c)
		return
	}
	if r.Leadership == nil || r.Leadership.Leading() || !strings.HasPrefix(c.FullPath(), "/v1/") {
		return
	}
	address, known := r.Leadership.Leader()
	r.passTo(c, address, known, "no replica leads now; one takes over within seconds")
}

// passTo answers a call through the replica that decides about it; none is the reason if there is no such replica.
func (r *relay) passTo(c *gin.Context, address string, known bool, none string) {
	if !known {
		r.answers.Fail(c, &problem{Kind: kindUnavailable, Detail: none})
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
	r.call(c, address, text)
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

// call sends the call to address and writes the answer. A leader that loses its lease ends, and so does its answer.
func (r *relay) call(c *gin.Context, address string, text []byte) {
	ctx, cancel := context.WithCancelCause(c.Request.Context())
	defer cancel(nil)
	timer := time.AfterFunc(writeTimeout, func() { cancel(errLeaderSlow) })
	defer timer.Stop()
	control := http.NewResponseController(c.Writer)
	if err := setDeadline(control, time.Now().Add(writeTimeout+writeTimeout/3)); err != nil {
		r.answers.Fail(c, fmt.Errorf("passing a call on: %w", err))
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = r.scheme, address
			p.Out.Host = p.In.Host // the leader compares it with a browser's Origin
			p.Out.Header.Set(passedHeader, "1")
		},
		Transport: r.transport,
		ErrorLog:  slog.NewLogLogger(r.Log.Handler(), slog.LevelDebug),
		ModifyResponse: func(response *http.Response) error {
			for name := range response.Header {
				c.Writer.Header().Del(name) // the leader has set it too
			}
			if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind == "text/event-stream" {
				timer.Stop()
				return setDeadline(control, time.Now().Add(streamAge+writeTimeout)) // the leader ends it before
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { r.fail(c, ctx, address, err) },
	}
	request := c.Request.WithContext(ctx)
	request.Body = io.NopCloser(bytes.NewReader(text))
	request.ContentLength, request.TransferEncoding = int64(len(text)), nil
	proxy.ServeHTTP(c.Writer, request)
}

// fail answers with the reason why the leader did not.
func (r *relay) fail(c *gin.Context, ctx context.Context, address string, err error) {
	const uncertain = "; the call may still have taken effect"
	switch {
	case shuttingDown(c.Request.Context()):
		r.answers.Fail(c, errShutdown)
	case c.Request.Context().Err() != nil:
		c.Abort() // the caller is gone
	case errors.Is(context.Cause(ctx), errLeaderSlow):
		r.answers.Fail(c, &problem{Kind: kindTimedOut, Detail: errLeaderSlow.Error() + uncertain})
	default:
		r.Log.Warn(
			"passing a REST call on to the leader failed", "leader", address, "path", c.Request.URL.Path, "error", err,
		)
		r.answers.Fail(c, &problem{Kind: kindUnavailable, Detail: "cannot reach the leader now" + uncertain})
	}
}
