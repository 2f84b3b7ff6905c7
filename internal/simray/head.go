package simray

import (
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
)

// Head is a running simulated Ray head. Its methods are safe for concurrent use.
type Head struct {
	options Options
	addr    string

	// mu guards all below. cluster advances to the clock's time whenever it is looked at.
	mu      sync.Mutex
	cluster *cluster
	server  *grpc.Server
	faults  map[string]Fault
	served  sync.WaitGroup
	starts  int
}

// Start starts a head that answers at Addr until Close.
func Start(options Options) (*Head, error) {
	if options.Version == "" {
		options.Version = Ray260
	}
	if options.Clock == nil {
		options.Clock = systemClock{}
	}
	if options.Address == "" {
		options.Address = "127.0.0.1:0"
	}
	h := &Head{options: options, addr: options.Address, faults: map[string]Fault{}}
	if err := h.serve(nil); err != nil {
		return nil, err
	}
	return h, nil
}

// serve brings the GCS up, with the given cluster or, when it is nil, with a new session and an empty one. Callers hold
// mu, or are Start.
func (h *Head) serve(kept *cluster) error {
	listener, err := net.Listen("tcp", h.addr)
	if err != nil {
		return fmt.Errorf("starting simulated Ray head: %w", err)
	}
	h.addr = listener.Addr().String()
	h.starts++
	if h.cluster = kept; kept == nil {
		h.cluster = newCluster(h.options, h.starts)
	}
	transport := insecure.NewCredentials()
	if h.options.TLS != nil {
		transport = credentials.NewTLS(h.options.TLS)
	}
	h.server = grpc.NewServer(
		grpc.Creds(transport), grpc.UnaryInterceptor(h.intercept), grpc.ForceServerCodec(rawCodec{}),
		grpc.MaxSendMsgSize(1<<30),
		// Small buffers: tests run a thousand heads in one process.
		grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10),
	)
	server := h.server
	autoscalerpb.RegisterAutoscalerStateServiceServer(server, autoscalerService{head: h})
	raypb.RegisterNodeInfoGcsServiceServer(server, nodeInfoService{head: h})
	raypb.RegisterInternalKVGcsServiceServer(server, kvService{head: h})
	raypb.RegisterNodeResourceInfoGcsServiceServer(server, nodeResourceService{head: h})
	raypb.RegisterActorInfoGcsServiceServer(server, actorInfoService{head: h})
	h.served.Add(1)
	go func() {
		defer h.served.Done()
		_ = server.Serve(listener) // ends by Stop
	}()
	return nil
}

// Addr is "ip:port" of the GCS.
func (h *Head) Addr() string { return h.addr }

// Alive reports whether the head serves: not closed, stopped, or dead of a fatal request.
func (h *Head) Alive() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.server != nil
}

// Stop ends the GCS as a crash does: calls under way get UNAVAILABLE, later ones find the port closed.
func (h *Head) Stop() {
	h.mu.Lock()
	server := h.server
	h.server = nil
	h.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}

// Close stops the head and waits for its goroutines.
func (h *Head) Close() {
	h.Stop()
	h.served.Wait()
}

// Restart brings up a new head at the same address, as without GCS fault tolerance: new session and cluster id,
// versions from zero, nodes, work, constraint and KV gone.
func (h *Head) Restart() error {
	h.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.serve(nil)
}

// RestartGCS brings up the same cluster again, as a head pod with GCS fault tolerance does after its container has
// ended (seen on Ray 2.60.0 with Redis): session, cluster id, KV, the workers with their node ids and their work stay;
// the head's own raylet is a new one; versions count from zero; the constraint and the reports are gone.
func (h *Head) RestartGCS() error {
	h.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.options.Clock.Now()
	h.cluster.advance(now)
	h.cluster.restart(now)
	return h.serve(h.cluster)
}

// look runs f on the cluster as it is at the clock's time.
func (h *Head) look(f func(c *cluster, now time.Time)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.options.Clock.Now()
	h.cluster.advance(now)
	f(h.cluster, now)
	h.cluster.advance(now)
}
