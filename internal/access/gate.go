package access

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// How long answers are remembered. A token that is revoked or a right that is removed still counts for trustFor; one
// that is granted counts after doubtFor.
const (
	trustFor = 10 * time.Second
	doubtFor = 3 * time.Second
	// knownFor is for how long the holder of a token that was valid is exempt from the limit on failures: another
	// client's guesses from the same address, which may be a proxy's, do not prevent a new review of that token.
	knownFor = 10 * time.Minute
	// reviewTimeout bounds one review.
	reviewTimeout = 5 * time.Second
)

// Bounds on what is remembered, and on the reviews of invalid tokens from one address.
const (
	maxTokens      = 2_000
	maxRights      = 20_000
	failuresPerSec = 5
	failuresAtOnce = 50
	maxAddresses   = 10_000
)

// Reviewer finds out who calls, and what a caller may do.
type Reviewer interface {
	// ReviewToken returns whose a bearer token is; false if it is invalid.
	ReviewToken(ctx context.Context, token string) (Caller, bool, error)
	// ReviewRight returns whether a caller has a right.
	ReviewRight(ctx context.Context, caller Caller, right Right) (bool, error)
}

// Config is the configuration of a Gate.
type Config struct {
	Reviewer Reviewer
	// ClientCAs returns the authorities for client certificates; nil for none. It is called for every request, so an
	// authority that is removed no longer counts on open connections.
	ClientCAs func() *x509.CertPool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Gate authenticates and authorizes calls. It is safe for concurrent use.
type Gate struct {
	config   Config
	tokens   *cache[reviewed]
	rights   *cache[bool]
	failures *Limiter
}

type reviewed struct {
	caller Caller
	known  bool
}

// New returns a Gate.
func New(config Config) (*Gate, error) {
	if config.Reviewer == nil {
		return nil, errors.New("access.Config needs a Reviewer")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Gate{
		config: config,
		tokens: newCache[reviewed](maxTokens, config.Now), rights: newCache[bool](maxRights, config.Now),
		failures: NewLimiter(failuresPerSec, failuresAtOnce, maxAddresses),
	}, nil
}

// Authenticate returns who makes a call: the owner of its bearer token, or the subject of its client certificate. A
// token has precedence, and a certificate does not make up for an invalid one: a proxy with a certificate of its own
// acts for the caller whose token it passes on. Errors are ErrUnauthenticated, ErrUnavailable, a *ThrottledError or
// that of the context.
func (g *Gate) Authenticate(r *http.Request) (Caller, error) {
	token, given, err := bearer(r.Header)
	switch {
	case err != nil:
		return Caller{}, err
	case given:
		return g.byToken(r.Context(), token, network(r.RemoteAddr))
	case g.config.ClientCAs != nil && r.TLS != nil && len(r.TLS.PeerCertificates) > 0:
		return g.byCertificate(r.TLS.PeerCertificates)
	}
	return Caller{}, fmt.Errorf("%w: there is no bearer token", ErrUnauthenticated)
}

func (g *Gate) byToken(ctx context.Context, token, address string) (Caller, error) {
	digest := sha256.Sum256([]byte(token))
	found, err := g.tokens.get(ctx, digest, func(ctx context.Context) (reviewed, time.Duration, error) {
		// Every guess costs a call to the API server, so an address has only a limited number.
		unverified := !g.wasGood(digest)
		if unverified {
			if wait := g.failures.Take(address, g.config.Now()); wait > 0 {
				return reviewed{}, 0, &ThrottledError{
					After: wait,
					Why:   "too many invalid tokens came from this address",
				}
			}
		}
		caller, known, err := g.config.Reviewer.ReviewToken(ctx, token)
		if err != nil {
			return reviewed{}, 0, fmt.Errorf("%w: reviewing a token: %w", ErrUnavailable, err)
		}
		if !known || caller.Name == "" {
			return reviewed{}, doubtFor, nil
		}
		if unverified {
			g.failures.Return(address, g.config.Now())
		}
		return reviewed{caller, true}, trustFor, nil
	})
	if err != nil {
		return Caller{}, err
	}
	if !found.known {
		return Caller{}, fmt.Errorf(
			"%w: the token is invalid: it has expired, or is for another server; `kubectl create token NAME "+
				"--audience "+Audience+"` makes one, "+
				"unless --token-audiences of the server sets others",
			ErrUnauthenticated,
		)
	}
	return found.caller, nil
}

// wasGood reports whether a token was valid when it was last reviewed, and that was recently.
func (g *Gate) wasGood(token digest) bool {
	last, until := g.tokens.last(token)
	return last.known && g.config.Now().Before(until.Add(knownFor))
}

// byCertificate uses the common name as the caller's name and the organizations as groups, as Kubernetes does.
func (g *Gate) byCertificate(chain []*x509.Certificate) (Caller, error) {
	leaf, between := chain[0], x509.NewCertPool()
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: g.config.ClientCAs(), Intermediates: between, CurrentTime: g.config.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return Caller{}, fmt.Errorf("%w: the client certificate is not valid: %w", ErrUnauthenticated, err)
	}
	if leaf.Subject.CommonName == "" {
		return Caller{}, fmt.Errorf("%w: the client certificate has no common name", ErrUnauthenticated)
	}
	groups := append([]string{}, leaf.Subject.Organization...)
	return Caller{Name: leaf.Subject.CommonName, Groups: append(groups, "system:authenticated")}, nil
}

// Authorize returns nil if the caller has the right, else ErrForbidden, ErrUnavailable or the error of ctx.
func (g *Gate) Authorize(ctx context.Context, caller Caller, right Right) error {
	key, err := json.Marshal(struct {
		Caller Caller
		Right  Right
	}{caller, right})
	if err != nil {
		return fmt.Errorf("%w: naming a right: %w", ErrUnavailable, err)
	}
	allowed, err := g.rights.get(ctx, sha256.Sum256(key), func(ctx context.Context) (bool, time.Duration, error) {
		allowed, err := g.config.Reviewer.ReviewRight(ctx, caller, right)
		switch {
		case err != nil:
			return false, 0, fmt.Errorf("%w: reviewing a right: %w", ErrUnavailable, err)
		case allowed:
			return true, trustFor, nil
		}
		return false, doubtFor, nil
	})
	if err != nil {
		return err
	}
	if !allowed {
		return fmt.Errorf("%w: %q may not %s", ErrForbidden, caller.Name, right)
	}
	return nil
}

// network returns what one owner of addresses typically has: the IPv4 address, or the /64 of an IPv6 address, without
// the port.
func network(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	address = address.Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	prefix, _ := address.Prefix(64) // 64 bits are never too many for IPv6
	return prefix.String()
}
