package gcs

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// Defaults of Config, and the limit of Ray.
const (
	// DefaultTimeout is the timeout of a read or a report. A healthy head answers in about 1 ms.
	DefaultTimeout = 5 * time.Second
	// DefaultDrainTimeout is the timeout of a drain. The GCS waits for the raylet, for up to 15 s if the raylet died.
	DefaultDrainTimeout = 30 * time.Second
	// DefaultMaxMessage is the maximum size of a reply in bytes. A node takes 0.4 KB, a node with a hundred
	// placement-group bundles 40 KB, and a shape 40 B. Ray allows 512 MiB, but then one faulty head could use up the
	// memory of the process, which serves the whole fleet.
	DefaultMaxMessage = 64 << 20
	// RayMaxMessage is the maximum size of a message that Ray servers send.
	RayMaxMessage = 512 << 20
)

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
	// Timeout is the timeout of one State with all its calls, of a report, and of every other call except a drain. Zero
	// means DefaultTimeout.
	Timeout time.Duration
	// DrainTimeout is the timeout of a drain. Zero means DefaultDrainTimeout.
	DrainTimeout time.Duration
	// MaxMessage is the maximum size of one reply in bytes. Zero means DefaultMaxMessage.
	MaxMessage int
	// Now returns the time. Its Unix milliseconds are the version of a report. Nil means time.Now.
	Now func() time.Time
}

// Validate returns an error for the first invalid field.
func (c Config) Validate() error {
	if _, port, err := net.SplitHostPort(c.Address); err != nil || port == "" {
		return fmt.Errorf("address %q: want \"ip:port\"", c.Address)
	}
	if c.Timeout < 0 || c.DrainTimeout < 0 {
		return fmt.Errorf("timeout %v, drain timeout %v: must not be negative", c.Timeout, c.DrainTimeout)
	}
	if c.MaxMessage < 0 || c.MaxMessage > RayMaxMessage {
		return fmt.Errorf("message limit %d: must lie between 0 and %d", c.MaxMessage, RayMaxMessage)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
