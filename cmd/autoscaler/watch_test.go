package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedBuffer is written by a command while a test reads.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
	return b.text.Write(text)
}

func (b *lockedBuffer) until(t *testing.T, want string) {
	t.Helper()
	for {
		b.mu.Lock()
		there, text := strings.Contains(b.text.String(), want), b.text.String()
		b.mu.Unlock()
		if there {
			return
		}
		select {
		case <-b.more:
		case <-time.After(20 * time.Second):
			t.Fatalf("want in it %q, got\n%s", want, text)
		}
	}
}

func TestAWatchShowsWhatChangedUntilTheCallerHasSeenEnough(t *testing.T) {
	r := newRemote(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, code := &lockedBuffer{more: make(chan struct{}, 1)}, make(chan int)
	go func() {
		code <- run(ctx, []string{"autoscaler", "status", "ml/llm", "-w"}, strings.NewReader(""), out, io.Discard)
	}()
	out.until(t, "ml/llm: managed")
	r.mu.Lock()
	r.view.Frozen = true
	r.mu.Unlock()
	r.hub.Changed(llmKey)
	out.until(t, "frozen: nothing is written")
	cancel()
	if got := <-code; got != exitOK {
		t.Errorf("exit %d", got)
	}
}

func TestAWatchExplainsAnewWhatChanged(t *testing.T) {
	r := newRemote(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, code := &lockedBuffer{more: make(chan struct{}, 1)}, make(chan int)
	go func() {
		code <- run(ctx, []string{"autoscaler", "explain", "ml/llm", "--group", "gpu", "-w"}, strings.NewReader(""), out, io.Discard)
	}()
	out.until(t, "group gpu: launch: launching 1 pod")
	r.mu.Lock()
	r.view.Snapshot.Requests = nil
	r.mu.Unlock()
	r.hub.Changed(llmKey)
	out.until(t, "nothing that waits needs another pod")
	cancel()
	if got := <-code; got != exitOK {
		t.Errorf("exit %d", got)
	}
	if got, _, errOut := command(t, "{}", "autoscaler", "explain", "--snapshot", "-", "--group", "gpu", "-w"); got != exitBadInput || !strings.Contains(errOut, "want a RayCluster with it") {
		t.Errorf("of a file: exit %d %s", got, errOut)
	}
}

func TestAWatchOfAClusterThatIsNotThereFails(t *testing.T) {
	newRemote(t)
	if code, _, errOut := command(t, "", "autoscaler", "status", "ml/other", "-w"); code != exitFailed || !strings.Contains(errOut, "no RayCluster ml/other") {
		t.Errorf("exit %d %s", code, errOut)
	}
}
