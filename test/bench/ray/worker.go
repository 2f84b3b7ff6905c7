package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// worker is a Python program that answers each line of JSON with one line. It keeps running between questions, because
// its imports alone take a second.
type worker struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
}

// startWorker runs a script with an interpreter.
func startWorker(ctx context.Context, python, script string) (*worker, error) {
	cmd := exec.CommandContext(ctx, python, "-c", script)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", python, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", python, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", python, err)
	}
	return &worker{cmd: cmd, in: in, answers: bufio.NewReaderSize(out, 1<<20)}, nil
}

// ask sends a question and reads its answer into answer.
func (w *worker) ask(question, answer any) error {
	if err := json.NewEncoder(w.in).Encode(question); err != nil {
		return fmt.Errorf("asking a worker: %w", err)
	}
	line, err := w.answers.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading a worker's answer: %w", err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		return fmt.Errorf("reading a worker's answer %.80q: %w", line, err)
	}
	return nil
}

// close ends the program's input, after which it ends by itself.
func (w *worker) close() error {
	if err := w.in.Close(); err != nil {
		return fmt.Errorf("ending a worker: %w", err)
	}
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("ending a worker: %w", err)
	}
	return nil
}
