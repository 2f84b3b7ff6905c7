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

// How long answers are remembered. A token that is revoked and a right that is taken away still count for as long; one that
// is given counts after the shorter time.
const (
	trustFor = 10 * time.Second
	doubtFor = 3 * time.Second
	// knownFor is for how long the holder of a token that was good is no stranger: guesses of others from the same address, which may be a
	// proxy's, do not keep it from being reviewed again.
	knownFor = 10 * time.Minute
	// reviewTimeout bounds one review.
	reviewTimeout = 5 * time.Second
)

// Bounds on what is remembered, and on what one address may have reviewed of tokens that turn out to be wrong.
const (
	maxTokens         = 2_000
	maxRights         = 20_000
	strangersPerSec   = 5
	strangersAtOnce   = 50
	maxStrangersKnown = 10_000
)

// TokenReviewer knows whose a bearer token is; false when it is nobody's.
type TokenReviewer interface {
	ReviewToken(ctx context.Context, token string) (Caller, bool, error)
}

// RightReviewer knows what a caller may do.
type RightReviewer interface {
	ReviewRight(ctx context.Context, caller Caller, right Right) (bool, error)
}

// Config is what a Gate needs.
type Config struct {
	Tokens TokenReviewer
	Rights RightReviewer
	// ClientCAs returns the authorities whose client certificates are taken; nil for none. It is asked at every call, so
	// an authority that is taken away no longer counts on connections that are open.
	ClientCAs func() *x509.CertPool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Gate authenticates and authorizes calls. It is safe for concurrent use.
type Gate struct {
	config    Config
	tokens    *cache[reviewed]
	rights    *cache[bool]
	strangers *Limiter
}

type reviewed struct {
	caller Caller
	known  bool
}

// New returns a Gate.
func New(config Config) (*Gate, error) {
	if config.Tokens == nil || config.Rights == nil {
		return nil, errors.New("access.Config needs Tokens and Rights")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Gate{
		config: config,
		tokens: newCache[reviewed](maxTokens, config.Now), rights: newCache[bool](maxRights, config.Now),
		strangers: NewLimiter(strangersPerSec, strangersAtOnce, maxStrangersKnown),
	}, nil
}

// Authenticate returns who makes a call: whose its bearer token is, or else the subject of its client certificate. A token
// goes first, and a wrong one is not made good by a certificate: a proxy with a certificate of its own speaks for the caller
// whose token it passes on. Errors are ErrUnauthenticated, ErrUnavailable, a *ThrottledError or that of the context.
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
		// Every guess costs a call of the API server, so an address has only so many of them.
		stranger := !g.wasGood(digest)
		if stranger {
			if wait := g.strangers.Take(address, g.config.Now()); wait > 0 {
				return reviewed{}, 0, &ThrottledError{After: wait, Why: "too many tokens that nobody has came from this address"}
			}
		}
		caller, known, err := g.config.Tokens.ReviewToken(ctx, token)
		if err != nil {
			return reviewed{}, 0, fmt.Errorf("%w: reviewing a token: %w", ErrUnavailable, err)
		}
		if !known || caller.Name == "" {
			return reviewed{}, doubtFor, nil
		}
		if stranger {
			g.strangers.Return(address)
		}
		return reviewed{caller, true}, trustFor, nil
	})
	if err != nil {
		return Caller{}, err
	}
	if !found.known {
		return Caller{}, fmt.Errorf("%w: the token is not valid: it is over, or not for this server; `kubectl create token NAME --audience "+Audience+"` makes one, "+
			"unless the server's --token-audiences name others", ErrUnauthenticated)
	}
	return found.caller, nil
}

// wasGood reports whether a token was good when it was reviewed last, and lately.
func (g *Gate) wasGood(token digest) bool {
	last, until := g.tokens.last(token)
	return last.known && g.config.Now().Before(until.Add(knownFor))
}

// byCertificate takes the common name as the caller's name and the organizations as groups, as Kubernetes does.
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

// Authorize returns nil when the caller has the right, else ErrForbidden, ErrUnavailable or the error of ctx.
func (g *Gate) Authorize(ctx context.Context, caller Caller, right Right) error {
	key, err := json.Marshal(struct {
		Caller Caller
		Right  Right
	}{caller, right})
	if err != nil {
		return fmt.Errorf("%w: naming a right: %w", ErrUnavailable, err)
	}
	allowed, err := g.rights.get(ctx, sha256.Sum256(key), func(ctx context.Context) (bool, time.Duration, error) {
		allowed, err := g.config.Rights.ReviewRight(ctx, caller, right)
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

// network is what one owner of addresses has: the IPv4 address, or the /64 of an IPv6 address, without the port.
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
