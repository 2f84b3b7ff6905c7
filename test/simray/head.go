package simray

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
)

// Head is a running simulated Ray head. It is safe for concurrent use.
type Head struct {
	options Options
	addr    string

	// mu guards the fields below. look advances cluster to the clock's time before each access.
	mu      sync.Mutex
	cluster *cluster
	server  *grpc.Server
	faults  map[string]Fault
	served  sync.WaitGroup
	starts  int
}

// Start starts a head that serves at Addr until Close.
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

// serve starts the GCS with the given cluster. If it is nil, the GCS starts with an empty cluster and a new session.
// Callers must hold mu, except Start. A process that this one is starting may hold the closed listener of the last GCS
// until its program runs, so a restart waits for the address.
func (h *Head) serve(kept *cluster) error {
	listener, err := net.Listen("tcp", h.addr)
	for n := 0; h.starts > 0 && errors.Is(err, syscall.EADDRINUSE) && n < 500; n++ {
		time.Sleep(20 * time.Millisecond)
		listener, err = net.Listen("tcp", h.addr)
	}
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
		// Buffers are small, because tests run a thousand heads in one process.
		grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10),
	)
	server := h.server
	autoscalerpb.RegisterAutoscalerStateServiceServer(server, autoscalerService{head: h})
	raypb.RegisterNodeInfoGcsServiceServer(server, nodeInfoService{head: h})
	raypb.RegisterInternalKVGcsServiceServer(server, kvService{head: h})
	raypb.RegisterNodeResourceInfoGcsServiceServer(server, nodeResourceService{head: h})
	raypb.RegisterActorInfoGcsServiceServer(server, actorInfoService{head: h})
	raypb.RegisterJobInfoGcsServiceServer(server, jobInfoService{head: h})
	raypb.RegisterPlacementGroupInfoGcsServiceServer(server, placementGroupService{head: h})
	h.served.Add(1)
	go func() {
		defer h.served.Done()
		_ = server.Serve(listener) // returns after Stop
	}()
	return nil
}

// Addr returns "ip:port" of the GCS.
func (h *Head) Addr() string { return h.addr }

// Alive reports whether the head serves: it is not closed, not stopped, and no fatal request has crashed it.
func (h *Head) Alive() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.server != nil
}

// Stop stops the GCS like a crash. Calls in progress return UNAVAILABLE, and the port is closed for later calls.
func (h *Head) Stop() {
	h.mu.Lock()
	server := h.server
	h.server = nil
	h.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}

// Close stops the head and waits for its goroutines to end.
func (h *Head) Close() {
	h.Stop()
	h.served.Wait()
}

// Restart starts a new head at the same address, as Ray does without GCS fault tolerance. The session and cluster id
// are new, versions start from zero, and nodes, work, constraint and KV are lost.
func (h *Head) Restart() error {
	h.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.serve(nil)
}

// RestartGCS starts the GCS again for the same cluster, as a head pod with GCS fault tolerance does after its container
// ended (seen on Ray 2.60.0 with Redis). The session, the cluster id, the KV, the workers with their node ids, and
// their work are kept. The head's own raylet is new. Versions start from zero. The constraint and the reports are lost.
func (h *Head) RestartGCS() error {
	h.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.options.Clock.Now()
	h.cluster.advance(now)
	h.cluster.restart(now)
	return h.serve(h.cluster)
}

// look calls f with the cluster at the clock's time.
func (h *Head) look(f func(c *cluster, now time.Time)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.options.Clock.Now()
	h.cluster.advance(now)
	f(h.cluster, now)
	h.cluster.advance(now)
}
