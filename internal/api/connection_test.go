package api

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// listening starts a server of NewServer on its own port.
func listening(t *testing.T) func() (net.Conn, error) {
	t.Helper()
	server, err := NewServer(Config{Fleet: fakeFleet{}, Requests: newFixture(t).requests})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }() // returns after Close
	t.Cleanup(func() { server.Close() })
	return func() (net.Conn, error) { return net.Dial("tcp", listener.Addr().String()) }
}

// speak writes text to a new connection. It returns the answer until the server closes the connection, or its first
// line.
func speak(t *testing.T, dial func() (net.Conn, error), text string, firstLine bool) string {
	t.Helper()
	connection, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(connection, text) }() // the server may answer and close before it has read all
	if firstLine {
		line, err := bufio.NewReader(connection).ReadString('\n')
		if err != nil {
			t.Fatalf("no line came back: %v", err)
		}
		return line
	}
	answer, err := io.ReadAll(connection)
	if err != nil {
		t.Fatalf("the server keeps the connection: %v", err)
	}
	return string(answer)
}

func TestAConnectionOfASlowClientTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wiredServer(t, func(c *Config) { c.Access = nil })
		dial := func() (net.Conn, error) { return w.Dial(t.Context(), "", "") }
		begun := time.Now()
		if got := speak(t, dial, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", false); strings.Contains(got, "200 OK") {
			t.Errorf("a header that does not end: %q", got)
		}
		if held := time.Since(begun); held > readHeaderTimeout+time.Second {
			t.Errorf("a header that does not end holds the connection for %v", held)
		}
		begun = time.Now()
		post := "POST " + llmPath + "/request_resources HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
		got := speak(t, dial, post, false)
		if !strings.HasPrefix(got, "HTTP/1.1 408 ") || !strings.Contains(got, problemBase+"slow-body") || !strings.Contains(got, "application/problem+json") {
			t.Errorf("a body that does not come: %q", got)
		}
		if held := time.Since(begun); held > readTimeout+time.Second {
			t.Errorf("a body that does not come holds the connection for %v", held)
		}
	})
}

func TestAShortOrHugeBodyIsAProblem(t *testing.T) {
	to := listening(t)
	head := "POST " + llmPath + "/request_resources HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
	for name, test := range map[string]struct{ text, want string }{
		"chunks that are none":     {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 "},
		"huge chunks":              {head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat(fmt.Sprintf("8000\r\n%s\r\n", strings.Repeat(" ", 0x8000)), 17), "HTTP/1.1 413 "},
		"a length and chunks":      {head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "HTTP/1.1 "},
		"two lengths":              {head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "HTTP/1.1 400 "},
		"a header as net/http has": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Huge: " + strings.Repeat("a", maxHeaderRead+8<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
		"no host":                  {"GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
		"what is not HTTP":         {"\x16\x03\x01\x00\xa5\r\n\r\n", "HTTP/1.1 400 "},
	} {
		if got := speak(t, to, test.text, true); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %s", name, got, test.want)
		}
	}
}

func TestHTTP2HasTheSameLimits(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Access = &fakeAccess{} })
	server := httptest.NewUnstartedServer(w.handler)
	built, err := NewServer(Config{Fleet: w.fleet, Requests: w.requests, TLS: &tls.Config{MinVersion: tls.VersionTLS12}})
	if err != nil {
		t.Fatal(err)
	}
	server.Config.HTTP2, server.Config.MaxHeaderBytes = built.HTTP2, built.MaxHeaderBytes
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	call := func(token, path string, header http.Header) *http.Response {
		t.Helper()
		request, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = header.Clone()
		if request.Header == nil {
			request.Header = http.Header{}
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		if response.ProtoMajor != 2 {
			t.Errorf("GET %s speaks %s", path, response.Proto)
		}
		return response
	}
	if got := call("alice", llmPath, nil); got.StatusCode != http.StatusOK || got.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("a call: %s, %v", got.Status, got.Header)
	}
	if got := call("", llmPath, nil); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", got.Status)
	}
	if got := call("alice", llmPath, http.Header{"X-Long": {strings.Repeat("a", maxHeader)}}); got.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long header: %s", got.Status)
	}
	if built.HTTP2.MaxConcurrentStreams != maxStreams {
		t.Errorf("%d streams on a connection", built.HTTP2.MaxConcurrentStreams)
	}
}
