package gcs

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// bearer adds Ray's token to every call. Its errors never contain the token.
type bearer struct {
	token func(context.Context) (string, error)
}

// GetRequestMetadata returns the header of RAY_AUTH_MODE=token, which every Ray service checks.
func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b.token(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading Ray token: %w", err)
	}
	token = strings.TrimSpace(token)
	if token == "" {
		return nil, nil
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("reading Ray token: it holds a character that no header may carry")
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity returns false, because Ray's token mode uses plain TCP unless TLS is configured too.
func (bearer) RequireTransportSecurity() bool { return false }
