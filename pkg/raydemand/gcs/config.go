package gcs

import (
	"context"
	"crypto/tls"
	"time"
)

// DefaultTimeout is the timeout of Config. A healthy head answers in about 1 ms.
const DefaultTimeout = 5 * time.Second

// maxMessage is the default of Config.MaxMessage. A node takes 0.4 KB, a node with a hundred placement-group bundles
// 40 KB, and a shape 40 B. Ray allows 512 MiB, but then one faulty head could use up the memory of the process, which
// serves the whole fleet.
const maxMessage = 64 << 20

// Config is the configuration of a client for one Ray head.
type Config struct {
	// Address is "ip:port" of the head's GCS. A name is resolved only once for each connection, so use the IP address
	// of the pod and dial again when it changes.
	Address string
	// Token returns the bearer token of RAY_AUTH_MODE=token. It is nil if the cluster has no token. The client calls it
	// before each call to the head, so it can read a token that rotates from a file. Heads without token mode ignore
	// the token.
	Token func(ctx context.Context) (string, error)
	// TLS enables mutual TLS (RAY_USE_TLS=1). If it is nil, the client sends plain text, including the token, as Ray
	// does.
	TLS *tls.Config
	// ClosedBy says what keeps this process from the GCS, if that is known. It is the advice when the head is silent.
	ClosedBy string
	// Timeout is the timeout of one State with all its calls, and of every other call. Zero means DefaultTimeout.
	Timeout time.Duration
	// MaxMessage is the maximum size of one reply in bytes. Zero means 64 MiB.
	MaxMessage int
}
