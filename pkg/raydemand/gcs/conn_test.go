package gcs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/raypb"
)

// kvReply is a reply of InternalKVGet with a value of that size.
func kvReply(t *testing.T, size int) answer {
	t.Helper()
	return replyOf(t, &raypb.InternalKVGetReply{Status: &raypb.GcsStatus{}, Value: bytes.Repeat([]byte("v"), size)})
}

// TestMessagesOfAnySizeGoBothWays sends requests beyond the window and the frames of the head, and reads replies beyond
// the window that a head gets at first, on one connection.
func TestMessagesOfAnySizeGoBothWays(t *testing.T) {
	r := newReplay(t, grpc.InitialWindowSize(64<<10), grpc.InitialConnWindowSize(64<<10), grpc.MaxRecvMsgSize(16<<20))
	client := dial(t, r)
	for _, size := range []int{0, 1, firstFrame, 3 * grantAfter, 20, 5 << 20} {
		r.set("InternalKVGet", kvReply(t, size))
		key := strings.Repeat("k", size)
		value, found, err := client.kvGet(t.Context(), "n", key)
		if err != nil || !found || len(value) != size {
			t.Fatalf("%d bytes: %d, %v, %v", size, len(value), found, err)
		}
		var got raypb.InternalKVGetRequest
		if err := proto.Unmarshal(r.calls[len(r.calls)-1].request, &got); err != nil || string(got.GetKey()) != key {
			t.Errorf("%d bytes: the head has read a key of %d, %v", size, len(got.GetKey()), err)
		}
	}
	if client.conn.link == nil || client.conn.link.stream != 11 {
		t.Errorf("the calls were not made on one connection: %+v", client.conn.link)
	}
}

// TestAConnectionThatTheHeadHasEndedIsReplaced ends connections between calls, and during a call.
func TestAConnectionThatTheHeadHasEndedIsReplaced(t *testing.T) {
	r := newReplay(t, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 20 * time.Millisecond}))
	r.set("InternalKVGet", kvReply(t, 3))
	client := dial(t, r)
	for range 5 {
		if _, found, err := client.kvGet(t.Context(), "n", "k"); err != nil || !found {
			t.Fatal(err)
		}
		time.Sleep(60 * time.Millisecond) // the head ends the connection
	}
	if len(r.calls) != 5 {
		t.Errorf("the head has seen %d calls, want 5", len(r.calls))
	}
	addr := serveTCP(t, func(conn net.Conn) { // a head that dies in a call
		framer := http2.NewFramer(conn, conn)
		_, _ = io.CopyN(io.Discard, conn, int64(len(http2.ClientPreface)))
		for {
			frame, err := framer.ReadFrame()
			if err != nil || frame.Header().Type == http2.FrameData {
				_ = framer.WriteWindowUpdate(1, 1) // it has seen the call
				return
			}
		}
	})
	client, err := Dial(Config{Address: addr, Timeout: time.Minute})
	must(t, err)
	defer func() { _ = client.Close() }()
	for range 2 {
		if _, _, err := client.kvGet(t.Context(), "n", "k"); !strings.Contains(failureOf(t, err).Happened, "ended the connection") {
			t.Errorf("%v: want that the head has ended the connection", err)
		}
	}
}

// TestAPingIsAnswered has a head ping in the middle of a call, as the servers of Ray do.
func TestAPingIsAnswered(t *testing.T) {
	r := newReplay(t, grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Second, Timeout: time.Second}))
	r.set("InternalKVGet", kvReply(t, 3))
	r.delay = 2500 * time.Millisecond
	if _, found, err := dial(t, r).kvGet(t.Context(), "n", "k"); err != nil || !found || len(r.calls) != 1 {
		t.Errorf("%v after %d calls", err, len(r.calls))
	}
}

func TestCallsWaitForOneAnotherAndEndWithTheirContext(t *testing.T) {
	r := newReplay(t)
	r.set("InternalKVGet", kvReply(t, 3))
	client := dial(t, r)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			if _, found, err := client.kvGet(t.Context(), "n", "k"); err != nil || !found {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	r.mu.Lock()
	r.delay = time.Minute
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 { // one calls, two wait
		calls.Go(func() {
			if _, _, err := client.kvGet(ctx, "n", "k"); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want that it was canceled", err)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	cancel()
	calls.Wait()
	calls.Go(func() {
		if _, _, err := client.kvGet(t.Context(), "n", "k"); err == nil {
			t.Error("a call has survived Close")
		}
	})
	time.Sleep(50 * time.Millisecond)
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	calls.Wait()
	if _, _, err := client.kvGet(t.Context(), "n", "k"); err == nil {
		t.Error("a call after Close succeeds")
	}
}

// FuzzAnswerOfTheHead answers a call with any bytes: it must end, with an error or a reply, and not panic.
func FuzzAnswerOfTheHead(f *testing.F) {
	var good bytes.Buffer
	framer := http2.NewFramer(&good, nil)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: []byte{0x88}}) // 200
	_ = framer.WriteData(1, false, []byte{0, 0, 0, 0, 2, 18, 0})
	trailer := append([]byte{0, 11}, "grpc-status"...)
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: append(trailer, 1, '0')})
	f.Add(good.Bytes())
	f.Add(good.Bytes()[:good.Len()-3])
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Add([]byte{0x15, 3, 1, 0, 2, 2, 0x50}) // a TLS alert
	f.Add([]byte{0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7})
	f.Add([]byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		here, there := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, there) }()
		go func() {
			_, _ = there.Write(bytes)
			_ = there.Close()
		}()
		c := newConn(Config{Address: "h:1", MaxMessage: 100})
		c.net, c.link = here, newLink(here)
		var reply raypb.InternalKVGetReply
		err := c.call(t.Context(), request{method: "/m", authority: "h:1", message: &raypb.InternalKVGetRequest{}, longest: 100}, &reply)
		if _, is := err.(broken); err != nil && !is && status.Code(err) == codes.OK {
			t.Errorf("%v has no status", err)
		}
		c.disconnect()
	})
}

// BenchmarkIdleConnections compares what a connection takes while it waits with one of the gRPC library, both beside
// their socket and the end of the server.
func BenchmarkIdleConnections(b *testing.B) {
	const connections = 500
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			go answerEmpty(socket)
		}
	}()
	addr := listener.Addr().String()
	const method = raypb.NodeInfoGcsService_CheckAlive_FullMethodName
	used := func(open func() io.Closer) (bytes, goroutines float64) {
		bytesBefore, before := usage()
		all := make([]io.Closer, connections)
		for i := range all {
			all[i] = open()
		}
		bytesNow, now := usage()
		for _, each := range all {
			must(b, each.Close())
		}
		return float64(bytesNow-bytesBefore) / connections, float64(now-before) / connections
	}
	for name, open := range map[string]func() io.Closer{
		"own": func() io.Closer {
			conn := newConn(Config{Address: addr, MaxMessage: 1 << 20})
			must(b, conn.Invoke(b.Context(), method, &raypb.CheckAliveRequest{}, &raypb.CheckAliveReply{}))
			return conn
		},
		"grpc": func() io.Closer {
			conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithReadBufferSize(1<<10), grpc.WithWriteBufferSize(4<<10))
			must(b, err)
			must(b, conn.Invoke(b.Context(), method, &raypb.CheckAliveRequest{}, &raypb.CheckAliveReply{}))
			return conn
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				bytes, goroutines := used(open)
				b.ReportMetric(bytes, "B/conn")
				b.ReportMetric(goroutines, "goroutines/conn")
			}
		})
	}
}

// usage returns the bytes of live objects and stacks, and the number of goroutines.
func usage() (bytes int64, goroutines int) {
	time.Sleep(500 * time.Millisecond) // what has been closed ends
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}

// answerEmpty answers each call on a connection with an empty message.
func answerEmpty(socket net.Conn) {
	defer func() { _ = socket.Close() }()
	_, _ = io.CopyN(io.Discard, socket, int64(len(http2.ClientPreface)))
	framer := http2.NewFramer(socket, socket)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		if data, is := frame.(*http2.DataFrame); is && data.StreamEnded() {
			id := data.StreamID
			header := append([]byte{0x88, 0, 12}, "content-type\x10application/grpc"...)
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, BlockFragment: header})
			_ = framer.WriteData(id, false, make([]byte, prefix))
			trailer := append([]byte{0, 11}, "grpc-status\x010"...)
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, EndStream: true, BlockFragment: trailer})
		}
	}
}
