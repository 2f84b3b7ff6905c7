// Package apiproxy stands between one client and a real API server. It delays and refuses requests, cuts watches, and
// reports what the client wrote. It changes no answer that it passes on. It can also cut the client off.
package apiproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Fault is what happens to requests.
type Fault struct {
	// Delay delays each request.
	Delay time.Duration
	// Code answers requests in place of the API server, every second one, so that a client makes progress.
	Code int
	// Verb limits Code to one HTTP method.
	Verb string
	// Cut cuts the client off as long as the fault lasts.
	Cut Cut
}

// Request is a request that could have changed something, and the status of its answer. Code is 0 if there was none.
type Request struct {
	At                             time.Time
	Verb, Resource, Namespace      string
	Name, Subresource, ContentType string
	Code                           int
}

// Proxy is a running proxy.
type Proxy struct {
	// URL is its address.
	URL    string
	server *http.Server
	seen   func(Request)

	mu      sync.Mutex // guards the fields below
	faults  map[int]Fault
	nextID  int
	count   map[int]int
	watches map[int]context.CancelFunc
	cuts    map[int]*cut
	// expired is until when a watch that continues from a version is answered with 410.
	expired time.Time
}

// Start starts a proxy on a host for the API server of a configuration. It calls seen for each Request.
func Start(host string, config *rest.Config, seen func(Request)) (*Proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	p := &Proxy{URL: "http://" + listener.Addr().String(), seen: seen, faults: map[int]Fault{},
		count: map[int]int{}, watches: map[int]context.CancelFunc{}, cuts: map[int]*cut{}}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // a connection that ends is what this is for
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{Handler: p.handler(forward)}
	go p.server.Serve(listener) //nolint:errcheck // it returns after Close
	return p, nil
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() error { return p.server.Close() }

// Kubeconfig writes a kubeconfig of the proxy.
func (p *Proxy) Kubeconfig(path string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.URL}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	config.CurrentContext = "proxy"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("writing the proxy's kubeconfig: %w", err)
	}
	return os.WriteFile(path, text, 0o600)
}

// Add adds a fault. The function that it returns removes it.
func (p *Proxy) Add(fault Fault) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nextID++
	id := p.nextID
	p.faults[id] = fault
	end := func() {}
	if fault.Cut != "" {
		end = p.cut(id, fault.Cut)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.faults, id)
		delete(p.count, id)
		end()
	}
}

// CutWatches ends all watches, like an API server that restarts behind a load balancer.
func (p *Proxy) CutWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endWatches()
}

// endWatches ends all watches. The caller holds mu.
func (p *Proxy) endWatches() {
	for _, end := range p.watches {
		end()
	}
}

// ExpireWatches ends all watches, and for a time answers those that want to continue with 410, as an API server does
// whose storage has compacted their version.
func (p *Proxy) ExpireWatches(during time.Duration) {
	p.mu.Lock()
	p.expired = time.Now().Add(during)
	p.mu.Unlock()
	p.CutWatches()
}

// handler applies the faults to a request before it passes it on.
func (p *Proxy) handler(forward http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &recorder{ResponseWriter: w}
		if r.Method != http.MethodGet {
			defer func() { p.seen(describe(r, answer.code)) }()
		}
		passed := p.cutOff(r)
		if passed == nil {
			panic(http.ErrAbortHandler)
		}
		r = passed
		delay, code := p.fate(r)
		if delay > 0 {
			select {
			case <-time.After(delay):
			case <-r.Context().Done():
				return
			}
		}
		if code != 0 {
			refuse(answer, code)
			return
		}
		if watches(r) {
			ctx, end := p.watch(r.Context())
			defer end()
			r = r.WithContext(ctx)
		}
		p.pass(forward, answer, r)
	})
}

// fate returns what the faults do to a request.
func (p *Proxy) fate(r *http.Request) (delay time.Duration, code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	continues := r.URL.Query().Get("resourceVersion") != ""
	if watches(r) && continues && time.Now().Before(p.expired) {
		return 0, http.StatusGone
	}
	for id, fault := range p.faults {
		delay = max(delay, fault.Delay)
		if fault.Code == 0 || fault.Verb != "" && fault.Verb != r.Method {
			continue
		}
		if p.count[id]++; p.count[id]%2 == 1 {
			code = fault.Code
		}
	}
	return delay, code
}

// watch registers a watch, so that it can be cut.
func (p *Proxy) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nextID++
	id := p.nextID
	p.watches[id] = cancel
	return ctx, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, id)
	}
}

func watches(r *http.Request) bool {
	value := r.URL.Query().Get("watch")
	return value == "true" || value == "1"
}

// reasons are the reasons of the API server for the codes of faults.
var reasons = map[int]metav1.StatusReason{
	http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusConflict: metav1.StatusReasonConflict,
	http.StatusGone: metav1.StatusReasonExpired, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
}

// refuse answers as the API server refuses.
func refuse(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reasons[code], Message: "the proxy refuses this request",
	}) // the client may be gone
}

// recorder records the status of an answer.
type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController flush.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// describe reads what a request is about from its path: /api/v1/… or /apis/GROUP/VERSION/…, then optionally
// namespaces/NAMESPACE, then RESOURCE/NAME/SUBRESOURCE.
func describe(r *http.Request, code int) Request {
	request := Request{At: time.Now(), Verb: r.Method, Code: code, ContentType: r.Header.Get("Content-Type")}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	skip := 2
	if parts[0] == "apis" {
		skip = 3
	}
	parts = parts[min(skip, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		request.Namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&request.Resource, &request.Name, &request.Subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	return request
}
