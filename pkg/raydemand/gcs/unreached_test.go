package gcs

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"heliostat.dev/heliostat/pkg/raydemand"
)

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
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
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
	if failure := failureOf(t, err); failure.Happened != silent+" did not answer within 100ms" {
		t.Errorf("%+v", failure)
	}
	client, err := Dial(Config{Address: silent, Timeout: 100 * time.Millisecond, ClosedBy: "spec.networkPolicy closes it"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	_, err = client.State(t.Context())
	if failure := failureOf(t, err); failure.Advice != "spec.networkPolicy closes it" {
		t.Errorf("%+v: want what is known to close the port as the reason", failure)
	}
	closed := status.New(codes.Unavailable, "connection error: desc = \"error reading server preface: read tcp 127.0.0.1:1->127.0.0.1:2: "+net.ErrClosed.Error()+"\"")
	err = (&Client{config: Config{Address: silent}}).unreached(closed, 100*time.Millisecond)
	if failure := failureOf(t, err); failure.Happened != silent+" did not answer within 100ms" {
		t.Errorf("told by the connection first: %+v", failure)
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	return client.State(t.Context())
}
