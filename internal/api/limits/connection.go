// Package limits bounds what callers can take from the server: connections, calls per second, calls at a time, and
// plans. It must not know HTTP handlers or what a call does.
package limits

import "time"

// Limits of a connection. A client that sends more slowly blocks only its own connection.
const (
	ReadHeaderTimeout = 5 * time.Second
	ReadTimeout       = 15 * time.Second
	WriteTimeout      = 30 * time.Second
	IdleTimeout       = 60 * time.Second
	// MaxHeader and MaxURI are the bytes up to which the server answers with a problem document. MaxHeaderRead is the
	// limit of net/http, which closes the connection without one.
	MaxHeader     = 16 << 10
	MaxURI        = 8 << 10
	MaxHeaderRead = 4 * MaxHeader
	// MaxStreams is the number of concurrent calls on one HTTP/2 connection.
	MaxStreams = 100
	// StreamTimeout is how long the reader of a stream may take for each write.
	StreamTimeout = 10 * time.Second
	// KubernetesTimeout is how long a call waits for Kubernetes. It is well below WriteTimeout.
	KubernetesTimeout = 10 * time.Second
)
