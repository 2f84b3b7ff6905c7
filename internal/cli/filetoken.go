package cli

import (
	"fmt"
	"net/http"
	"os"
	"strings"
)

// withFileToken sends the token of a file. It reads the file for each call, because a pod's token changes every hour.
type withFileToken struct {
	file, header string
	next         http.RoundTripper
}

// RoundTrip sends the call with the token.
func (b withFileToken) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := readToken(b.file)
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set(b.header, "Bearer "+token)
	return b.next.RoundTrip(request)
}

func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading --token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("reading --token-file: %s holds no token", file)
	}
	return token, nil
}

// isLoopbackHost reports whether a host can only mean this machine.
func isLoopbackHost(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
