package api

import "time"

// Limits of a connection. A client that sends more slowly blocks only its own connection.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	// MaxHeader and MaxURI are the bytes up to which the server answers with a problem document. MaxHeaderRead is the
	// limit of net/http, which closes the connection without one.
	maxHeader     = 16 << 10
	maxURI        = 8 << 10
	maxHeaderRead = 4 * maxHeader
	// MaxStreams is the number of concurrent calls on one HTTP/2 connection.
	maxStreams = 100
	// StreamTimeout is how long the reader of a stream may take for each write.
	streamTimeout = 10 * time.Second
	// KubernetesTimeout is how long a call waits for Kubernetes. It is well below WriteTimeout.
	kubernetesTimeout = 10 * time.Second
)
