package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"heliostat.dev/heliostat/test/chaos/verdict"
)

// history keeps the facts of a round in a file, one JSON object in a line, so that people can see on what a judgement
// rests. It leaves out answers and repeated states, which are most facts.
type history struct {
	file   *os.File
	writer *bufio.Writer
	states map[string]verdict.State
}

func newHistory(path string) (*history, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("keeping the history: %w", err)
	}
	return &history{file: file, writer: bufio.NewWriter(file), states: map[string]verdict.State{}}, nil
}

// add adds a fact. A fact that cannot be written is missing in the file and nowhere else.
func (h *history) add(fact verdict.Fact) {
	if h == nil {
		return
	}
	switch f := fact.(type) {
	case verdict.Answer, verdict.Usage:
		return
	case verdict.State:
		last := h.states[f.Cluster]
		h.states[f.Cluster] = f
		if last.At = f.At; reflect.DeepEqual(last, f) {
			return
		}
	}
	kind := reflect.TypeOf(fact).Name()
	_ = json.NewEncoder(h.writer).Encode(map[string]any{kind: fact})
}

// restart forgets the rounds before.
func (h *history) restart() error {
	h.writer.Reset(h.file)
	clear(h.states)
	_, err := h.file.Seek(0, 0)
	return errors.Join(err, h.file.Truncate(0))
}

// read returns the text of the file.
func (h *history) read() ([]byte, error) {
	if err := h.writer.Flush(); err != nil {
		return nil, err
	}
	return os.ReadFile(h.file.Name())
}

func (h *history) close() error {
	if h == nil {
		return nil
	}
	return h.file.Close()
}
