package gcs

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// authorization returns the header of RAY_AUTH_MODE=token, which every Ray service checks; empty without a token. It is
// also sent over plain TCP, as Ray does. Its errors never contain the token.
func authorization(ctx context.Context, read func(context.Context) (string, error)) (string, error) {
	if read == nil {
		return "", nil
	}
	token, err := read(ctx)
	if err != nil {
		return "", fmt.Errorf("reading Ray token: %w", err)
	}
	token = strings.TrimSpace(token)
	if token == "" {
		return "", nil
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("reading Ray token: it holds a character that no header may carry")
	}
	return "Bearer " + token, nil
}
