// Package serve is what Ray Serve's REST API says: how many replicas each deployment is to have, and what one replica
// requests. It reads /api/serve/applications/ of a head's dashboard (ray: dashboard/modules/serve/serve_head.py), and
// /api/v0/placement_groups, which has the placement groups that only the code of an application sets (ray: dashboard/
// modules/state/state_head.py). Both are the same in 2.40, 2.52 and 2.60. The package must not write, decide, follow
// redirects or know Kubernetes.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Defaults of Config.
const (
	// DefaultTimeout bounds both calls together: a healthy head needs some milliseconds, and one with 1,000 replicas
	// 100 ms.
	DefaultTimeout = 3 * time.Second
	// DefaultMaxReply is the maximum size of a reply in bytes. A replica takes 0.6 KB.
	DefaultMaxReply = 8 << 20
)

// Config says which head is read.
type Config struct {
	// Address is "ip:port" of the dashboard. It speaks HTTP without TLS, also with RAY_USE_TLS=1.
	Address string
	// Token is sent as a bearer token; empty sends none. A head with RAY_AUTH_MODE=token requires it.
	Token string
	// Timeout and MaxReply are the defaults if they are zero.
	Timeout  time.Duration
	MaxReply int64
}

// Read returns the deployments of all applications, sorted. A head on which Serve does not run has none. The error says
// which address was called and what came back; it wraps raydemand.ErrUnavailable, ErrAuth, ErrUnsupported or
// ErrBadReply.
func Read(ctx context.Context, c Config) ([]raydemand.Deployment, error) {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxReply == 0 {
		c.MaxReply = DefaultMaxReply
	}
	if _, port, err := net.SplitHostPort(c.Address); err != nil || port == "" {
		return nil, fmt.Errorf(`address of a dashboard %q: want "ip:port"`, c.Address)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	text, err := c.get(ctx, "/api/serve/applications/")
	var all []raydemand.Deployment
	if err == nil {
		all, err = Decode(text)
	}
	if err == nil {
		err = bounded(all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Serve applications at %s: %w", c.Address, err)
	}
	if !slices.ContainsFunc(all, func(d raydemand.Deployment) bool { return d.Replicas > 0 && d.Strategy == "" }) {
		return all, nil
	}
	if text, err = c.get(ctx, groupsPath); err == nil {
		err = AddGroups(all, text)
	}
	if err == nil {
		err = bounded(all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the placement groups at %s: %w", c.Address, err)
	}
	return all, nil
}

// get returns the reply to one call.
func (c Config) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Address+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	// Calls are seconds apart and go to pods, so no connection is kept and no proxy is used. A token must not reach
	// another host, so redirects are not followed. Compression would hide the size of a reply.
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10}
	client := http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	reply, err := client.Do(request)
	if err != nil {
		return nil, unreached(ctx, err, c.Timeout)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, refusal(reply)
	}
	text, err := io.ReadAll(io.LimitReader(reply.Body, c.MaxReply+1))
	if err != nil {
		return nil, unreached(ctx, err, c.Timeout)
	}
	if int64(len(text)) > c.MaxReply {
		return nil, fmt.Errorf("%w: it has more than %d bytes", raydemand.ErrBadReply, c.MaxReply)
	}
	return text, nil
}

// unreached explains a call whose reply did not come, or not in full.
func unreached(ctx context.Context, err error, timeout time.Duration) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: no reply within %v", raydemand.ErrUnavailable, timeout)
	}
	return fmt.Errorf("%w: %w", raydemand.ErrUnavailable, err)
}

// refusal explains a reply with another status than 200.
func refusal(reply *http.Response) error {
	const most = 200
	text, _ := io.ReadAll(io.LimitReader(reply.Body, most)) // the status says enough without it
	said := reply.Status
	if line := excerpt(text); line != "" {
		said += ": " + line
	}
	switch {
	case reply.StatusCode == http.StatusUnauthorized, reply.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%w: %s", raydemand.ErrAuth, said)
	case reply.StatusCode >= 300 && reply.StatusCode < 400:
		return fmt.Errorf("%w: it redirects to %q, which is not followed", raydemand.ErrBadReply,
			reply.Header.Get("Location"))
	case reply.StatusCode == http.StatusNotFound, reply.StatusCode == http.StatusNotImplemented:
		return fmt.Errorf("%w: %s; its image has neither Ray Serve nor the dashboard in full", raydemand.ErrUnsupported,
			said)
	case reply.StatusCode >= 500:
		return fmt.Errorf("%w: %s", raydemand.ErrUnavailable, said)
	}
	return fmt.Errorf("%w: %s", raydemand.ErrBadReply, said)
}

// excerpt returns the beginning of a text on one line.
func excerpt(text []byte) string {
	const most = 80
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:min(len(text), 4*most)]), "?")), " ")
	if runes := []rune(line); len(runes) > most {
		line = string(runes[:most]) + "…"
	}
	return line
}
