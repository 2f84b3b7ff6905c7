package gcs

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// Defaults of Config.
const (
	// DefaultTimeout bounds a read or a report: a healthy head answers in about 1 ms.
	DefaultTimeout = 5 * time.Second
	// DefaultDrainTimeout bounds a drain: the GCS waits for the raylet, up to 15 s for one that died meanwhile.
	DefaultDrainTimeout = 30 * time.Second
	// DefaultMaxMessage bounds a reply. A node takes 0.4 KB, one that holds a hundred placement-group bundles 40 KB,
	// and a shape 40 B; Ray itself allows 512 MiB, with which one lying head could take the memory of the whole
	// fleet's process.
	DefaultMaxMessage = 64 << 20
	// RayMaxMessage is the most that Ray servers send.
	RayMaxMessage = 512 << 20
)

// Config says how to reach one Ray head.
type Config struct {
	// Address is "ip:port" of the head's GCS. A name is resolved once per connection: prefer the pod's IP and
	// dial again when it changes.
	Address string
	// Token returns the bearer token of RAY_AUTH_MODE=token; nil when the cluster has none. It is asked on every
	// call, so a rotating token may come from a file. Heads without token mode ignore the header.
	Token func(ctx context.Context) (string, error)
	// TLS turns on mutual TLS (RAY_USE_TLS=1); nil speaks plain text, the token included, as Ray itself does.
	TLS *tls.Config
	// Timeout bounds a reading with all its calls, a report, and each other call but a drain; zero means
	// DefaultTimeout.
	Timeout time.Duration
	// DrainTimeout bounds a drain; zero means DefaultDrainTimeout.
	DrainTimeout time.Duration
	// MaxMessage bounds one reply in bytes; zero means DefaultMaxMessage.
	MaxMessage int
	// Now numbers the reports in Unix milliseconds; nil means time.Now.
	Now func() time.Time
}

// Validate names the first field that cannot work.
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
