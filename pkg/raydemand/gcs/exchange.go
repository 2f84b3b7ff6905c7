package gcs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// link is what a connection of HTTP/2 keeps between two calls.
type link struct {
	net    net.Conn
	stream uint32 // that of the last call; 0 before the first
	// window is how many bytes the head takes on the connection, first how many it takes on a new stream, and frame
	// the largest frame that it takes.
	window, first int64
	frame         int
	// taken is how many bytes the head has sent since it last got a larger window.
	taken uint32
	// ends: the head ends the connection and takes no further calls on it.
	ends bool
}

const (
	// firstWindow and firstFrame are what a peer takes before it says so (RFC 9113, 6.5.2).
	firstWindow = 65_535
	firstFrame  = 16_384
	// mostWindow is the largest window of HTTP/2. What is kept of a reply is bounded by Config.MaxMessage.
	mostWindow = 1<<31 - 1
	// grantAfter is how much the head may have sent before it gets a larger window.
	grantAfter = 1 << 20
	// frameHeader is how many bytes come before each frame; the first three are its length.
	frameHeader = 9
	// keptReply is the longest reply whose buffer is used again.
	keptReply = 1 << 20
	// mostHeader bounds the header of a reply, with the text of an error.
	mostHeader = 64 << 10
)

func newLink(socket net.Conn) *link {
	return &link{net: socket, window: firstWindow, first: firstWindow, frame: firstFrame}
}

// request is a call.
type request struct {
	method, authority, token string
	secure                   bool
	message                  proto.Message
	longest                  int // the longest reply, in bytes
}

// rayTextTrailer holds the message of an ABORTED status, as plain text instead of a google.rpc.Status.
const rayTextTrailer = "grpc-status-details-bin"

// response is what a head answers.
type response struct {
	code             codes.Code
	message, details string
	// reply is valid until the next call of the exchange.
	reply []byte
	// heard: the head has answered something, so it has seen the call. refused: it says that it has not begun it.
	heard, refused bool
}

// exchange makes calls. It holds what a call needs and a connection that waits does not, so that connections share it.
// Neither side has a table of headers: the settings forbid it to the head.
type exchange struct {
	*link
	in     *bufio.Reader
	out    *bufio.Writer
	framer *http2.Framer

	header  bytes.Buffer
	headers *hpack.Encoder
	sent    []byte // the request with its prefix
	body    []byte // of the reply

	response
	// quota is how many bytes the head takes on the stream; known: it has sent a status.
	quota       int64
	known, done bool
}

var exchanges = sync.Pool{New: func() any {
	e := &exchange{in: bufio.NewReader(nil), out: bufio.NewWriter(nil)}
	e.headers = hpack.NewEncoder(&e.header)
	e.headers.SetMaxDynamicTableSizeLimit(0)
	e.framer = http2.NewFramer(e.out, e.in)
	e.framer.ReadMetaHeaders = hpack.NewDecoder(0, nil)
	e.framer.MaxHeaderListSize = mostHeader
	e.framer.SetMaxReadFrameSize(firstFrame)
	e.framer.SetReuseFrames()
	return e
}}

// prefix is how long the prefix of a message is: whether it is compressed, and its length.
const prefix = 5

// call makes a call and waits for its answer. An error says what is wrong with the connection, which can then not be
// used again.
func (e *exchange) call(ctx context.Context, l *link, r request) (response, error) {
	e.link, e.response, e.quota, e.known, e.done = l, response{}, l.first, false, false
	if e.body = e.body[:0]; cap(e.body) > keptReply {
		e.body = nil
	}
	e.in.Reset(l.net)
	e.out.Reset(l.net)
	stop := context.AfterFunc(ctx, func() { _ = l.net.SetDeadline(time.Unix(1, 0)) })
	err := e.roundTrip(r)
	if !stop() {
		l.ends = true // it has a deadline now that is over
	}
	e.link = nil
	e.in.Reset(nil)
	e.out.Reset(nil)
	return e.response, err
}

func (e *exchange) roundTrip(r request) (err error) {
	e.sent, err = proto.MarshalOptions{}.MarshalAppend(append(e.sent[:0], 0, 0, 0, 0, 0), r.message)
	if err != nil {
		e.fail(codes.Internal, fmt.Sprintf("encoding a request: %v", err))
		return nil
	}
	binary.BigEndian.PutUint32(e.sent[1:], uint32(len(e.sent)-prefix)) //nolint:gosec // protobuf allows 2 GiB
	if e.stream == 0 {
		if err := e.open(); err != nil {
			return err
		}
		e.stream = 1
	} else {
		e.stream += 2
	}
	if e.stream > mostWindow-2 {
		e.ends = true // there are no more numbers for streams
	}
	if err := e.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: e.stream, EndHeaders: true,
		BlockFragment: e.headersOf(r)}); err != nil {
		return err
	}
	rest := e.sent
	for len(rest) > 0 && !e.done {
		n := int(min(int64(len(rest)), int64(e.frame), e.window, e.quota))
		if n <= 0 { // the head says when it takes more
			if err := e.read(r.longest); err != nil {
				return err
			}
			continue
		}
		if err := e.framer.WriteData(e.stream, n == len(rest), rest[:n]); err != nil {
			return err
		}
		rest, e.window, e.quota = rest[n:], e.window-int64(n), e.quota-int64(n)
	}
	e.ends = e.ends || len(rest) > 0 // the head has answered before it had the whole call
	for !e.done {
		if err := e.read(r.longest); err != nil {
			return err
		}
	}
	e.conclude()
	if !e.ends && e.rest(r.longest) != nil {
		e.ends = true // the call has its answer
	}
	return nil
}

// rest handles the frames that have come with the end of a reply. A part of a frame is an error: it would get lost.
func (e *exchange) rest(longest int) error {
	for e.in.Buffered() > 0 {
		header, err := e.in.Peek(min(frameHeader, e.in.Buffered()))
		if err != nil || len(header) < frameHeader ||
			e.in.Buffered() < frameHeader+int(header[0])<<16+int(header[1])<<8+int(header[2]) {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
		if err := e.read(longest); err != nil {
			return err
		}
	}
	return e.out.Flush()
}

// open begins a connection: the head has no table of headers, and sends as much as it likes.
func (e *exchange) open() error {
	if _, err := e.out.WriteString(http2.ClientPreface); err != nil {
		return err
	}
	return errors.Join(e.framer.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0},
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: mostWindow},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: mostHeader}),
		e.framer.WriteWindowUpdate(0, mostWindow-firstWindow))
}

func (e *exchange) headersOf(r request) []byte {
	e.header.Reset()
	scheme := "http"
	if r.secure {
		scheme = "https"
	}
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: scheme}, {Name: ":path", Value: r.method},
		{Name: ":authority", Value: r.authority}, {Name: "content-type", Value: "application/grpc"},
		{Name: "user-agent", Value: "heliostat"}, {Name: "te", Value: "trailers"},
		{Name: "authorization", Value: r.token, Sensitive: true},
	} {
		if field.Value != "" {
			_ = e.headers.WriteField(field) // a buffer takes everything
		}
	}
	return e.header.Bytes()
}

// read sends what is to be sent, and handles one frame of the head.
func (e *exchange) read(longest int) error {
	if e.in.Buffered() == 0 {
		if err := e.out.Flush(); err != nil {
			return err
		}
	}
	frame, err := e.framer.ReadFrame()
	if err != nil {
		return err
	}
	own := frame.Header().StreamID == e.stream
	e.heard = e.heard || own
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		return e.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			return e.framer.WritePing(true, f.Data)
		}
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			e.window += int64(f.Increment)
		} else if own {
			e.quota += int64(f.Increment)
		}
	case *http2.GoAwayFrame:
		e.ends = true
		if f.LastStreamID < e.stream && !e.done {
			e.refused = true
			return fmt.Errorf("the head ends the connection: %v %q", f.ErrCode, shortened(string(f.DebugData())))
		}
	case *http2.RSTStreamFrame:
		if own && !e.done && f.ErrCode == http2.ErrCodeRefusedStream {
			e.refused = true
			return fmt.Errorf("the head refuses the call: %v", f.ErrCode)
		} else if own && !e.done {
			e.fail(codes.Unavailable, "the head ended the call: "+f.ErrCode.String())
		}
	case *http2.MetaHeadersFrame:
		if own {
			e.fields(f)
		}
	case *http2.DataFrame:
		return e.data(f, own, longest)
	}
	return nil
}

func (e *exchange) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	if err := f.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingInitialWindowSize:
			e.quota += int64(s.Val) - e.first
			e.first = int64(s.Val)
		case http2.SettingMaxFrameSize:
			e.frame = int(s.Val)
		}
		return s.Valid()
	}); err != nil {
		return err
	}
	return e.framer.WriteSettingsAck()
}

// data adds a part of the reply. A reply that is too long fails the call, and its rest ends the connection.
func (e *exchange) data(f *http2.DataFrame, own bool, longest int) error {
	if e.taken += f.Length; e.taken > grantAfter {
		if err := e.framer.WriteWindowUpdate(0, e.taken); err != nil {
			return err
		}
		e.taken = 0
	}
	switch {
	case !own || e.done:
		return nil
	case e.known: // a page of a proxy, whose status is known
		e.done = f.StreamEnded()
		return nil
	}
	e.body = append(e.body, f.Data()...)
	size := 0
	if len(e.body) >= prefix {
		size = int(binary.BigEndian.Uint32(e.body[1:]))
	}
	switch {
	case size > longest:
		e.fail(codes.ResourceExhausted, fmt.Sprintf("the reply has %d bytes, more than %d", size, longest))
		e.ends = true
	case len(e.body) > prefix+size:
		e.fail(codes.Internal, "the reply is longer than it says")
		e.ends = true
	case f.StreamEnded():
		e.fail(codes.Internal, "the reply has no status")
	}
	return nil
}

// fields reads the header or the trailer of a reply; an error has its status in the only one.
func (e *exchange) fields(f *http2.MetaHeadersFrame) {
	if strings.HasPrefix(f.PseudoValue("status"), "1") {
		return // interim
	}
	for _, field := range f.Fields {
		switch field.Name {
		case ":status":
			if field.Value != "200" {
				e.code, e.message, e.known = codes.Unavailable, "HTTP status "+field.Value, true
			}
		case "content-type":
			if !strings.HasPrefix(field.Value, "application/grpc") && !e.known { // something else than a head answers
				e.code, e.message, e.known = codes.Unknown, "content type "+quoted(field.Value), true
			}
		case "grpc-status":
			number, err := strconv.ParseUint(field.Value, 10, 32)
			if e.code, e.known = codes.Code(number), true; err != nil {
				e.code = codes.Unknown
			}
		case "grpc-message":
			e.message = field.Value
			if text, err := url.PathUnescape(field.Value); err == nil {
				e.message = text
			}
		case rayTextTrailer:
			e.details = field.Value
			if text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(field.Value, "=")); err == nil {
				e.details = string(text)
			}
		}
	}
	if !f.StreamEnded() {
		return
	}
	if e.done = true; !e.known {
		e.fail(codes.Internal, "the reply has no status")
	}
}

func (e *exchange) fail(code codes.Code, message string) {
	e.code, e.message, e.known, e.done = code, message, true, true
}

// conclude sets the reply of a call that has succeeded.
func (e *exchange) conclude() {
	switch {
	case e.code != codes.OK:
	case len(e.body) < prefix || len(e.body) < prefix+int(binary.BigEndian.Uint32(e.body[1:])):
		e.fail(codes.Internal, "the reply is cut")
	case e.body[0] != 0:
		e.fail(codes.Internal, "the reply is compressed, which was not asked for")
	default:
		e.reply = e.body[prefix:]
	}
}
