package api

import (
	"errors"
	"net/http"
	"time"
)

// answerStream writes an answer of unlimited length. An ordinary answer has one deadline for all of it. A stream has
// one for each write, and none between writes: over HTTP/2, a deadline that passes between writes would end the stream
// too.
type answerStream struct {
	writer  http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// newAnswerStream returns a stream to a reader that must take each write within timeout.
func newAnswerStream(w http.ResponseWriter, timeout time.Duration) *answerStream {
	return &answerStream{writer: w, control: http.NewResponseController(w), timeout: timeout}
}

// Send writes texts and flushes them.
func (s *answerStream) Send(texts ...[]byte) error {
	err := s.Begin()
	for _, text := range texts {
		if err == nil {
			_, err = s.writer.Write(text)
		}
	}
	if err == nil {
		err = s.control.Flush()
	}
	return errors.Join(err, s.End())
}

// Begin sets the deadline of one write.
func (s *answerStream) Begin() error { return s.SetDeadline(time.Now().Add(s.timeout)) }

// End removes the deadline.
func (s *answerStream) End() error { return s.SetDeadline(time.Time{}) }

// Flush sends what was written.
func (s *answerStream) Flush() error { return s.control.Flush() }

// SetDeadline sets the time by which all writes must be complete; zero means no limit. Writers without deadlines ignore
// it.
func (s *answerStream) SetDeadline(until time.Time) error {
	if err := s.control.SetWriteDeadline(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
