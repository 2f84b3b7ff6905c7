package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/webui"
)

// patience is long enough for a browser on busy cores.
const patience = 2 * time.Minute

var chromium string

func TestMain(m *testing.M) {
	found := exec.Command("../../.ci/debian", "chromium")
	found.Stderr = os.Stderr
	output, err := found.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "finding a browser:", err)
		os.Exit(1)
	}
	chromium = strings.TrimSpace(string(output))
	os.Exit(m.Run())
}

// newServer serves the page and its API. change may modify the configuration, and wrap the handler.
func newServer(t *testing.T, f *fleet, change func(*api.Config), wrap func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	config := api.Config{Fleet: f, Requests: noRequests{}, Owned: noOwned{}, Page: webui.Handler()}
	if change != nil {
		change(&config)
	}
	handler, err := api.NewHandler(config)
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// screen is the size of a browser window and its settings.
type screen struct {
	width, height int64
	dark          bool
}

var (
	desktop = screen{width: 1280, height: 900}
	phone   = screen{width: 390, height: 844}
)

// tab is one page in its own browser. It collects the page's errors.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

func open(t *testing.T, s screen, address string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.WSURLReadTimeout(patience))
	alloc, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.hear)
	b.do(log.Enable())
	b.resize(s)
	b.do(chromedp.Navigate(address))
	return b
}

// resize sets the window to the size of a screen.
func (b *tab) resize(s screen) {
	b.t.Helper()
	scheme := "light"
	if s.dark {
		scheme = "dark"
	}
	b.do(chromedp.EmulateViewport(s.width, s.height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

func (b *tab) hear(event any) {
	var fault string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = e.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		// The page shows a denied or missing response itself, so the browser's own message about it is not an error.
		if e.Entry.Level == log.LevelError && e.Entry.Source != log.SourceNetwork {
			fault = e.Entry.Text
		}
	}
	if fault != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.faults = append(b.faults, fault)
	}
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	// The first run starts the browser, which runs as long as its context.
	if chromedp.FromContext(b.ctx).Target == nil {
		if err := chromedp.Run(b.ctx); err != nil {
			b.t.Fatal("starting the browser: ", err)
		}
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// ask evaluates an expression in the page.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	var answer T
	b.do(chromedp.Evaluate(expression, &answer, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return answer
}

// until waits until an expression is true. what describes it in messages.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if ask[bool](b, expression) {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("no %s; the page says:\n%s", what, ask[string](b, "document.body.innerText"))
		}
	}
}

// shows waits for text on the page.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%q", text), fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// unharmed fails the test if the page threw an error or its content security policy blocked something.
func (b *tab) unharmed() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.t.Error("the page complains:", fault)
	}
}
