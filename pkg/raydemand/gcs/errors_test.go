package gcs

import (
	"context"
	"errors"
	"net"
	"path"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestRecordedErrorsAreClassified replays every recorded read and drain that failed.
func TestRecordedErrorsAreClassified(t *testing.T) {
	want := map[string]error{
		"err-wrong-cluster-id":                 raydemand.ErrWrongCluster,
		"err-old-cluster-id":                   raydemand.ErrWrongCluster,
		"nil-cluster-id":                       raydemand.ErrWrongCluster,
		"malformed-cluster-id":                 raydemand.ErrWrongCluster,
		"err-auth_good-token-wrong-cluster-id": raydemand.ErrWrongCluster,
		"err-auth_wrong-cluster-id":            raydemand.ErrAuth,
		"err-auth":                             raydemand.ErrAuth,
		"err-head-down":                        raydemand.ErrUnavailable,
		"err-fatal":                            raydemand.ErrUnavailable,
		"err-drain_reason-0":                   raydemand.ErrRayletUnreachable,
		"err-malformed-request":                raydemand.ErrBadReply,
		"err-unknown-method":                   raydemand.ErrUnsupported,
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
			if sentinel == nil {
				if !strings.Contains(err.Error(), "must be non-negative") {
					t.Errorf("%s %s: %v", version, e.File, err)
				}
				continue
			}
			if !errors.Is(err, sentinel) {
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

func TestPassiveHeadIsTold(t *testing.T) {
	r := newReplay(t)
	r.set("GetClusterResourceState", answer{code: codes.Aborted, message: "GcsPassive"})
	if _, err := dial(t, r).State(t.Context()); !errors.Is(err, raydemand.ErrPassive) {
		t.Errorf("State: %v", err)
	}
	r.set("CheckAlive", answer{reply: []byte{0x12, 1, 'x', 0x20, 0}}) // ray_version "x", is_leader false
	if _, err := dial(t, r).RayVersion(t.Context()); !errors.Is(err, raydemand.ErrPassive) {
		t.Errorf("RayVersion: %v", err)
	}
}

func TestVersionIsReadFromEveryRay(t *testing.T) {
	for _, version := range versions {
		r := newReplay(t)
		for _, e := range manifest(t, version) {
			if path.Base(e.Path) == "CheckAlive" && e.Code == "OK" {
				r.set("CheckAlive", recordedAnswer(t, version, e.File))
			}
		}
		if got, err := dial(t, r).RayVersion(t.Context()); err != nil || got != version {
			t.Errorf("RayVersion = %q, %v, want %s", got, err, version)
		}
	}
}

func TestSilentHeadCostsOneDeadline(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	client, err := Dial(Config{Address: listener.Addr().String(), Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if _, err := client.State(t.Context()); !errors.Is(err, raydemand.ErrUnavailable) {
		t.Errorf("State of a head that never answers: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.State(canceled); !errors.Is(err, context.Canceled) || errors.Is(err, raydemand.ErrUnavailable) {
		t.Errorf("State after our own cancellation: %v, want only context.Canceled", err)
	}
}

func TestTooLargeReplyFailsOnlyItsCall(t *testing.T) {
	r := headOf(t, "2.60.0", "over-100-shapes")
	client := dial(t, r, func(c *Config) { c.MaxMessage = 2000 })
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
		{}, {Address: "10.0.0.1"}, {Address: "10.0.0.1:"}, {Address: "h:1", Timeout: -1}, {Address: "h:1", DrainTimeout: -1},
		{Address: "h:1", MaxMessage: RayMaxMessage + 1},
	} {
		if _, err := Dial(config); err == nil {
			t.Errorf("Dial(%+v) accepted it", config)
		}
	}
}
