package gcs

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/pkg/raydemand"
)

var versions = []string{"2.40.0", "2.52.0", "2.60.0"}

// replay is a test head that answers each method with recorded bytes.
type replay struct {
	addr string
	// mu guards the fields below.
	mu      sync.Mutex
	answers map[string]answer // by method; for InternalKVGet, by method and key
	calls   []recorded
	delay   time.Duration
}

type answer struct {
	reply    []byte
	code     codes.Code
	message  string
	trailers map[string]string
}

type recorded struct {
	method  string
	request []byte
	header  metadata.MD
}

// newReplay starts a head without answers: every method returns UNIMPLEMENTED.
func newReplay(t *testing.T, options ...grpc.ServerOption) *replay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r := &replay{addr: listener.Addr().String(), answers: map[string]answer{}}
	server := grpc.NewServer(append(options, grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(r.handle))...)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return r
}

func (r *replay) handle(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	method := path.Base(full)
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	header, _ := metadata.FromIncomingContext(stream.Context())
	r.mu.Lock()
	r.calls = append(r.calls, recorded{method, request, header})
	a, known := r.answers[method]
	if method == "InternalKVGet" {
		a, known = r.answers[method+" "+hex.EncodeToString(request)]
		if !known {
			a, known = r.answers[method]
		}
	}
	delay := r.delay
	r.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
	if !known {
		return status.Error(codes.Unimplemented, "")
	}
	if a.code != codes.OK {
		stream.SetTrailer(metadata.New(a.trailers))
		return status.Error(a.code, a.message)
	}
	return stream.SendMsg(&a.reply)
}

// replyOf returns the answer with a message.
func replyOf(t *testing.T, message proto.Message) answer {
	t.Helper()
	reply, err := proto.Marshal(message)
	must(t, err)
	return answer{reply: reply}
}

func (r *replay) set(key string, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[key] = a
}

// slow delays every answer.
func (r *replay) slow(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = delay
}

func (r *replay) called(method string) []recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []recorded
	for _, c := range r.calls {
		if c.method == method {
			calls = append(calls, c)
		}
	}
	return calls
}

type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (rawCodec) Name() string { return "proto" }

// entry is one element of a version's manifest.json.
type entry struct {
	File    string     `json:"file"`
	State   string     `json:"state"`
	Path    string     `json:"path"`
	Request string     `json:"request_hex"`
	Header  [][]string `json:"metadata"`
	Code    string     `json:"code"`
}

func manifest(t testing.TB, version string) []entry {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", version, "manifest.json"))
	must(t, err)
	var entries []entry
	must(t, json.Unmarshal(text, &entries))
	return entries
}

// recording returns the entry of one file.
func recording(t testing.TB, version, file string) entry {
	t.Helper()
	for _, e := range manifest(t, version) {
		if e.File == file {
			return e
		}
	}
	t.Fatalf("manifest of %s has no %s", version, file)
	return entry{}
}

func recordedAnswer(t testing.TB, version, file string) answer {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", version, file))
	must(t, err)
	if !strings.HasSuffix(file, ".json") {
		return answer{reply: text}
	}
	var failed struct {
		Code     int               `json:"code_number"`
		Message  string            `json:"message"`
		Trailers map[string]string `json:"trailers"`
	}
	must(t, json.Unmarshal(text, &failed))
	return answer{code: codes.Code(failed.Code), message: failed.Message, trailers: failed.Trailers}
}

// headOf returns a head that replays one recorded state. The other answers come from a head of the same kind: the v2
// flag, a KV store without a request, and the node table of the state or of idle-1.
func headOf(t *testing.T, version, state string) *replay {
	t.Helper()
	r := newReplay(t)
	r.set("InternalKVGet", recordedAnswer(t, version, "missing-key.InternalKVGet.binpb"))
	head := "head-only"
	if strings.HasPrefix(state, "v1-") {
		head = "v1-idle"
	}
	if strings.HasPrefix(state, "default-head") {
		head = "default-head"
	}
	for _, e := range manifest(t, version) {
		method := path.Base(e.Path)
		base := strings.Split(e.File, ".")[0]
		switch {
		case method == "InternalKVGet" && e.State == head, method == "InternalKVGet" && e.State == state:
			r.set(method+" "+e.Request, recordedAnswer(t, version, e.File))
		case method == "GetClusterResourceState" && base == state:
			r.set(method, recordedAnswer(t, version, e.File))
		case method == "GetAllNodeInfo" && (e.State == state || e.State == "idle-1" && len(r.answers[method].reply) == 0):
			r.set(method, recordedAnswer(t, version, e.File))
		}
	}
	return r
}

func dial(t *testing.T, r *replay, change ...func(*Config)) *Client {
	t.Helper()
	config := Config{Address: r.addr, Timeout: 20 * time.Second}
	for _, c := range change {
		c(&config)
	}
	client, err := Dial(config)
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func readState(t *testing.T, version, state string) raydemand.State {
	t.Helper()
	reading, err := dial(t, headOf(t, version, state)).State(t.Context())
	if err != nil {
		t.Fatalf("%s %s: %v", version, state, err)
	}
	return reading
}

// demandText formats a demand with one line for each entry, for comparisons.
func demandText(d raydemand.Demand) string {
	var lines []string
	for _, r := range d.Requests {
		lines = append(lines, "request "+requestText(r))
	}
	for _, g := range d.Gangs {
		line := fmt.Sprintf("gang %s %v", g.Strategy, g.Bundles)
		if g.BundleSelectors != nil {
			line += fmt.Sprintf(" where %v", g.BundleSelectors)
		}
		if g.TopologyLabel != "" {
			line += " on one " + g.TopologyLabel
		}
		lines = append(lines, line)
	}
	for _, r := range d.Constraint {
		lines = append(lines, "at least "+requestText(r))
	}
	return strings.Join(lines, "\n")
}

func requestText(r raydemand.Request) string {
	text := fmt.Sprintf("%d x %v", r.Count, r.Bundle)
	for i, s := range r.Selectors {
		text += []string{" where ", " else "}[min(i, 1)] + s.String()
	}
	return text
}
