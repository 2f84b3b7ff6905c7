package api

import "time"

// Limits of a connection. A client that sends more slowly blocks only its own connection.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	// maxHeader and maxURI are the bytes up to which the server answers with a problem document. maxHeaderRead is the
	// limit of net/http, which closes the connection without one.
	maxHeader     = 16 << 10
	maxURI        = 8 << 10
	maxHeaderRead = 4 * maxHeader
	// maxStreams is the number of concurrent calls on one HTTP/2 connection.
	maxStreams = 100
	// streamTimeout is how long the reader of a stream may take for each write.
	streamTimeout = 10 * time.Second
	// kubernetesTimeout is how long a call waits for Kubernetes. It is well below writeTimeout.
	kubernetesTimeout = 10 * time.Second
)
