package gcs

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// handshake stores why the last connection failed between the TCP connection and the first data from the head. gRPC
// reports UNAVAILABLE for all these failures. A head that restarts becomes available again, but a rejected certificate
// must be fixed.
//
// A real head does not send a reason. If the client certificate is missing, signed by another CA or expired, the head
// closes the connection without a TLS alert. It does the same if the client does not use TLS.
type handshake struct {
	credentials.TransportCredentials
	last *atomic.Pointer[handshakeFault]
}

// handshakeFault describes a failed connection, with the fields of raydemand.Failure. happened has a %s for the
// address. cause is the error text that gRPC quotes in the status. tls is false on a plain connection, which can fail
// for other reasons than TLS.
type handshakeFault struct {
	happened, advice, cause string
	tls                     bool
}

// ends are the errors of a closed connection. gRPC's writer can get and quote one of them before the reader gets the
// TLS alert.
var ends = []string{io.EOF.Error(), syscall.ECONNRESET.Error(), syscall.EPIPE.Error(), net.ErrClosed.Error()}

func newHandshake(config *tls.Config) handshake {
	h := handshake{TransportCredentials: insecure.NewCredentials(), last: new(atomic.Pointer[handshakeFault])}
	if config != nil {
		h.TransportCredentials = credentials.NewTLS(config)
	}
	return h
}

// ClientHandshake implements credentials.TransportCredentials.
func (h handshake) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		h.remember(err)
		return nil, nil, err
	}
	return &silentConn{Conn: conn, handshake: h}, info, nil
}

// Clone implements credentials.TransportCredentials.
func (h handshake) Clone() credentials.TransportCredentials {
	return handshake{TransportCredentials: h.TransportCredentials.Clone(), last: h.last}
}

func (h handshake) speaksTLS() bool { return h.Info().SecurityProtocol == "tls" }

func (h handshake) remember(err error) {
	if fault := faultOf(err, h.speaksTLS()); fault != nil {
		h.last.Store(fault)
	}
}

// faultOf returns the fault for err, or nil if err does not concern TLS: the client's own deadline, cancellation or
// close.
func faultOf(err error, speaksTLS bool) *handshakeFault {
	var alert *net.OpError
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	fault := &handshakeFault{tls: speaksTLS, cause: err.Error()}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
		return nil
	case errors.As(err, &certificate):
		fault.happened = "we do not accept the certificate of %s: " + err.Error()
	case errors.As(err, &record):
		fault.happened = "%s answers without TLS: " + err.Error()
		fault.advice = "the head does not speak TLS (RAY_USE_TLS=1)"
	case errors.As(err, &alert) && alert.Op == "remote error": // how crypto/tls marks an alert from the peer
		fault.happened = "%s refuses our certificate or version: " + err.Error()
	case isEnd(err) && speaksTLS:
		fault.happened = "%s ended the connection in the handshake"
		fault.advice = "Ray does so when our certificate is missing, expired or not signed by its CA, " +
			"or when it does not speak TLS (RAY_USE_TLS=1)"
	case isEnd(err):
		fault.happened = "%s ended the connection before its first word"
		fault.advice = "a head with RAY_USE_TLS=1 does so when a client speaks plain text"
	default:
		fault.happened = "the connection with %s failed: " + err.Error()
	}
	return fault
}

func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// faultIn returns the last fault if the status message quotes it. Otherwise the message is about another connection
// attempt.
func (h handshake) faultIn(message string) *handshakeFault {
	fault := h.last.Load()
	if fault == nil {
		return nil
	}
	for _, quote := range append(ends[:len(ends):len(ends)], fault.cause) {
		escaped := strconv.Quote(quote)
		if strings.Contains(message, quote) || strings.Contains(message, escaped[1:len(escaped)-1]) {
			return fault
		}
	}
	return nil
}

// err returns the error of a call to address that failed with err.
func (f *handshakeFault) err(address string, err error) error {
	sentinel := raydemand.ErrUnavailable
	if f.tls {
		sentinel = raydemand.ErrTLS
	}
	happened := strings.Replace(f.happened, "%s", address, 1)
	return &raydemand.Failure{Kind: sentinel, Happened: shortenedTo(400, happened), Advice: f.advice,
		Detail: err.Error()}
}

// silentConn is a connection until the first data from the head. With TLS 1.3, the client side of the handshake
// completes before the head verifies the client certificate.
type silentConn struct {
	net.Conn
	handshake handshake
	spoken    atomic.Bool
	failed    atomic.Bool
}

// Read implements net.Conn.
func (c *silentConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.spoken.Swap(true) {
		c.handshake.last.Store(nil)
	}
	c.check(err)
	return n, err
}

// Write implements net.Conn.
func (c *silentConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.check(err)
	return n, err
}

func (c *silentConn) check(err error) {
	if err == nil || c.spoken.Load() {
		return
	}
	if again := c.failed.Swap(true); again && isEnd(err) {
		return // the alert that the reader gets is clearer than the writer's broken pipe
	}
	c.handshake.remember(err)
}
