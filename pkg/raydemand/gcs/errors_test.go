package gcs

import (
	"context"
	"errors"
	"io"
	"net"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestRecordedErrorsAreClassified replays every recorded read and drain that failed.
func TestRecordedErrorsAreClassified(t *testing.T) {
	want := map[string]error{
		"err-auth":              raydemand.ErrAuth,
		"err-head-down":         raydemand.ErrUnavailable,
		"err-fatal":             raydemand.ErrUnavailable,
		"err-malformed-request": raydemand.ErrBadReply,
		"err-unknown-method":    raydemand.ErrUnsupported,
	}
	seen := 0
	for _, version := range versions {
		for _, e := range manifest(t, version) {
			method := path.Base(e.Path)
			if e.Code == "OK" || method != "GetClusterResourceState" && method != "DrainNode" {
				continue
			}
			sentinel, longest := error(nil), ""
			for prefix, s := range want {
				if strings.HasPrefix(e.File, prefix) && len(prefix) > len(longest) {
					sentinel, longest = s, prefix
				}
			}
			seen++
			r := newReplay(t)
			recorded := recordedAnswer(t, version, e.File)
			r.set(method, recorded)
			client := dial(t, r)
			var err error
			if method == "DrainNode" {
				_, err = client.Drain(t.Context(), idleDrain())
			} else {
				_, err = client.State(t.Context())
			}
			if err == nil || sentinel != nil && !errors.Is(err, sentinel) || sentinel == nil && !strings.Contains(err.Error(), recorded.message) {
				t.Errorf("%s %s: %v, want %v", version, e.File, err, sentinel)
			}
			if text := recorded.trailers[rayTextTrailer]; text != "" && !strings.Contains(err.Error(), text) {
				t.Errorf("%s %s: %v does not tell %q", version, e.File, err, text)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d recorded errors", seen)
	}
}

func TestAReadingThatWeCancelSaysNothingOfTheHead(t *testing.T) {
	client := dial(t, newReplay(t))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.State(canceled); !errors.Is(err, context.Canceled) || errors.Is(err, raydemand.ErrUnavailable) {
		t.Errorf("State after our own cancellation: %v, want only context.Canceled", err)
	}
}

func TestTooLargeReplyFailsOnlyItsCall(t *testing.T) {
	r := headOf(t, "2.60.0", "over-100-shapes")
	r.set("GetClusterResourceState", answer{reply: make([]byte, maxMessage+1)})
	client := dial(t, r, func(c *Config) { c.Timeout = time.Minute })
	if _, err := client.State(t.Context()); !errors.Is(err, raydemand.ErrBadReply) {
		t.Fatalf("State: %v, want ErrBadReply", err)
	}
	r.set("GetClusterResourceState", recordedAnswer(t, "2.60.0", "head-only.GetClusterResourceState.binpb"))
	if _, err := client.State(t.Context()); err != nil {
		t.Errorf("State after it: %v", err)
	}
}

func TestGarbageIsABadReply(t *testing.T) {
	r := newReplay(t)
	for _, garbage := range []string{"\xff\xff\xff\xff", "", "\x0a\x7f"} {
		r.set("GetClusterResourceState", answer{reply: []byte(garbage)})
		if _, err := dial(t, r).State(t.Context()); !errors.Is(err, raydemand.ErrBadReply) {
			t.Errorf("State from %q: %v, want ErrBadReply", garbage, err)
		}
	}
}

func TestConfigNamesWhatCannotWork(t *testing.T) {
	for _, config := range []Config{
		{}, {Address: "10.0.0.1"}, {Address: "10.0.0.1:"},
	} {
		if _, err := Dial(config); err == nil {
			t.Errorf("Dial(%+v) accepted it", config)
		}
	}
}

// failureOf returns the Failure in err. Its text must not contain transport error text from gRPC.
func failureOf(t *testing.T, err error) *raydemand.Failure {
	t.Helper()
	var failure *raydemand.Failure
	if !errors.As(err, &failure) {
		t.Fatalf("%v is no failure that is told in a sentence", err)
	}
	for _, word := range []string{"rpc error", "desc =", "transport:", `\"`} {
		if strings.Contains(failure.Error(), word) {
			t.Errorf("%q is in the words of the transport: %s", failure.Error(), word)
		}
	}
	return failure
}

func TestAnUnreachedHeadIsToldInASentenceAndInFullForTheLog(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := listener.Addr().String()
	must(t, listener.Close())
	_, err = readFrom(t, addr, time.Minute)
	failure := failureOf(t, err)
	if failure.Happened != "nothing listens at "+addr || !strings.Contains(failure.Advice, "head pod") || !strings.Contains(failure.Detail, "dial tcp "+addr) {
		t.Errorf("%+v", failure)
	}
	if !errors.Is(err, raydemand.ErrUnavailable) {
		t.Errorf("%v is not ErrUnavailable", err)
	}
}

func TestAHeadThatEndsAPlainConnectionIsToldApartFromWhatThatMayMean(t *testing.T) {
	addr := serveTCP(t, func(net.Conn) {})
	_, err := readFrom(t, addr, time.Minute)
	failure := failureOf(t, err)
	if strings.Contains(failure.Happened, "TLS") || !strings.Contains(failure.Advice, "RAY_USE_TLS") {
		t.Errorf("%+v: want the guess about TLS in the advice alone", failure)
	}
}

func TestAHeadThatIsSilentOrSaysThatItIsUnavailableIsTold(t *testing.T) {
	silent := serveTCP(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	_, err := readFrom(t, silent, 100*time.Millisecond)
	if failure := failureOf(t, err); failure.Happened != silent+" did not answer within 100ms" || !errors.Is(err, raydemand.ErrUnavailable) {
		t.Errorf("%+v", failure)
	}
	client, err := Dial(Config{Address: silent, Timeout: 100 * time.Millisecond, ClosedBy: "spec.networkPolicy closes it"})
	must(t, err)
	defer func() { _ = client.Close() }()
	_, err = client.State(t.Context())
	if failure := failureOf(t, err); failure.Advice != "spec.networkPolicy closes it" {
		t.Errorf("%+v: want what is known to close the port as the reason", failure)
	}
	r := newReplay(t)
	r.set("GetClusterResourceState", answer{code: codes.Unavailable, message: "shutting down"})
	_, err = dial(t, r).State(t.Context())
	if failure := failureOf(t, err); !strings.Contains(failure.Happened, `cannot be called: "shutting down"`) {
		t.Errorf("%+v", failure)
	}
}

// serveTCP handles one connection at a time. It closes a connection when handle returns, or when the test ends.
func serveTCP(t *testing.T, handle func(net.Conn)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			handle(conn)
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = listener.Close(); served.Wait() })
	return listener.Addr().String()
}

func readFrom(t *testing.T, addr string, timeout time.Duration) (raydemand.State, error) {
	t.Helper()
	client, err := Dial(Config{Address: addr, Timeout: timeout})
	must(t, err)
	defer func() { _ = client.Close() }()
	return client.State(t.Context())
}

func TestTokenIsSentOnEveryCallAndAskedAgain(t *testing.T) {
	r := headOf(t, "2.60.0", "idle-1")
	tokens := []string{"first", "second\n", "third", "fourth"}
	client := dial(t, r, func(c *Config) {
		c.Token = func(context.Context) (string, error) {
			token := tokens[0]
			tokens = tokens[1:]
			return token, nil
		}
	})
	for range 2 {
		if _, err := client.State(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, c := range r.calls {
		got = append(got, c.header.Get("authorization")...)
	}
	if strings.Join(got, ", ") != "Bearer first, Bearer second, Bearer third" {
		t.Errorf("headers %q", got)
	}
}

func TestUnreadableTokenIsAnAuthErrorThatDoesNotTellIt(t *testing.T) {
	r := headOf(t, "2.60.0", "idle-1")
	for name, token := range map[string]func(context.Context) (string, error){
		"failing":       func(context.Context) (string, error) { return "", errors.New("no such file") },
		"two lines":     func(context.Context) (string, error) { return "hidden\nvalue", nil },
		"not printable": func(context.Context) (string, error) { return "hidden\x00", nil },
	} {
		_, err := dial(t, r, func(c *Config) { c.Token = token }).State(t.Context())
		if !errors.Is(err, raydemand.ErrAuth) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want ErrAuth without the token", name, err)
		}
	}
	if len(r.calls) > 0 {
		t.Errorf("%d calls were sent", len(r.calls))
	}
}
