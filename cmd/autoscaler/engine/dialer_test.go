package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
)

// headService is a name in the certificate of package httptest.
const headService = "example.com"

// TestTheSidecarTakesTokenAndCertificatesFromItsOwnEnvironment has no manager, because the Role that KubeRay creates
// for a sidecar does not allow it to read Secrets.
func TestTheSidecarTakesTokenAndCertificatesFromItsOwnEnvironment(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	shown := certified.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(shown.PrivateKey)
	must(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: shown.Certificate[0]})
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, text, 0o600))
		return file
	}
	files := map[string]string{
		"RAY_USE_TLS": "1", "RAY_TLS_CA_CERT": write("ca.crt", cert),
		"RAY_TLS_SERVER_CERT": write("tls.crt", cert), "RAY_TLS_SERVER_KEY": write("tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}
	tests := []struct {
		name string
		env  map[string]string
		auth nodepool.Auth
		tls  bool
	}{
		{name: "the token that KubeRay injects", env: map[string]string{"RAY_AUTH_TOKEN": "secret"},
			auth: nodepool.Auth{Required: true, TokenSecret: "llm", TokenKey: "auth_token"}},
		{name: "a token in a file", env: map[string]string{"RAY_AUTH_TOKEN_PATH": write("token", []byte("secret\n"))},
			auth: nodepool.Auth{Required: true, KubernetesToken: true}},
		{name: "the token goes before its file", env: map[string]string{"RAY_AUTH_TOKEN": "secret", "RAY_AUTH_TOKEN_PATH": "/does/not/exist"},
			auth: nodepool.Auth{Required: true}},
		{name: "certificates too", env: files, auth: nodepool.Auth{Token: "secret", TLSSecret: "ray-worker-secret-llm"}, tls: true},
		{name: "certificates that only the environment tells of", env: files, auth: nodepool.Auth{Token: "secret"}, tls: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var server *tls.Config
			if test.tls {
				server = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certified.TLS.Certificates,
					ClientAuth: tls.RequireAnyClientCert}
			}
			ray := &rayHead{token: "secret"}
			stop, err := ray.start(server)
			must(t, err)
			t.Cleanup(stop)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			o := options{kube: kube.Options{Single: &nodepool.ClusterKey{Namespace: "ml", Name: "llm"}}, loop: controller.Config{GCSTimeout: 10 * time.Second}}
			client, err := o.dialer(nil)(t.Context(), nodepool.Cluster{Head: headAt(t, ray.addr), Auth: test.auth})
			must(t, err)
			defer func() { _ = client.Close() }()
			if _, err := client.State(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the operator's network policy closes is the reason in status, which shows the error of the reading.
func TestASilentHeadBehindANetworkPolicyIsToldWithThePolicy(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = silent.Close() }()
	at := headAt(t, silent.Addr().String())
	at.Ready, at.ClosedBy = true, "spec.networkPolicy (DenyAll) closes it"
	for single, want := range map[*nodepool.ClusterKey]bool{nil: true, {Namespace: "ml", Name: "llm"}: false} {
		o := options{kube: kube.Options{Single: single}, loop: controller.Config{GCSTimeout: 100 * time.Millisecond}}
		client, err := o.dialer(nil)(t.Context(), nodepool.Cluster{Head: at})
		must(t, err)
		_, err = client.State(t.Context())
		_ = client.Close()
		told := controller.HeadSummary(err, at)
		if strings.HasSuffix(told, "spec.networkPolicy (DenyAll) closes it: `autoscaler doctor` prints the ingress rule for Heliostat") != want {
			t.Errorf("single %v: %s", single, told)
		}
	}
}

func headAt(t *testing.T, address string) nodepool.Head {
	t.Helper()
	ip, port, err := net.SplitHostPort(address)
	must(t, err)
	number, err := strconv.ParseInt(port, 10, 32)
	must(t, err)
	return nodepool.Head{IP: ip, GCSPort: int32(number), ServiceFQDN: headService}
}

func TestWithoutAnythingInTheEnvironmentTheSecretsAreAsked(t *testing.T) {
	var config gcs.Config
	auth := nodepool.Auth{Required: true, TokenSecret: "llm", TokenKey: "auth_token", TLSSecret: "certs"}
	cluster := nodepool.Cluster{Auth: auth}
	nothing := func(string) string { return "" }
	if err := authenticateAsRay(nothing, &config, &cluster); err != nil || config.Token != nil || config.TLS != nil || cluster.Auth != auth {
		t.Errorf("config %+v, auth %+v, error %v; want all as it was", config, cluster.Auth, err)
	}
}

func TestAMissingTokenOfKubeRayNamesItsFile(t *testing.T) {
	env := rayEnvironment(func(name string) string {
		return map[string]string{"RAY_ENABLE_K8S_TOKEN_AUTH": "true"}[name]
	})
	if _, err := env.token()(t.Context()); err == nil || !strings.Contains(err.Error(), kubeRayTokenFile) {
		t.Errorf("error is %v, want it to name %s", err, kubeRayTokenFile)
	}
}

// rayHead is a Ray head at rest, behind Ray's protocol: its nodes never change, and nothing waits for a node. The rest
// of Ray is in test/simray.
type rayHead struct {
	autoscalerpb.UnimplementedAutoscalerStateServiceServer
	raypb.UnimplementedInternalKVGcsServiceServer
	raypb.UnimplementedNodeInfoGcsServiceServer
	nodes   []*autoscalerpb.NodeState
	token   string // required in every call, if set
	addr    string
	version int64
}

// start serves at a free port until the returned function is called. Without tls, the head speaks plain text.
func (h *rayHead) start(tls *tls.Config) (stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	options := []grpc.ServerOption{grpc.UnaryInterceptor(h.authorize)}
	if tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(tls)))
	}
	server := grpc.NewServer(options...)
	autoscalerpb.RegisterAutoscalerStateServiceServer(server, h)
	raypb.RegisterInternalKVGcsServiceServer(server, h)
	raypb.RegisterNodeInfoGcsServiceServer(server, h)
	h.addr = listener.Addr().String()
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	return func() { server.Stop(); <-done }, nil
}

func (h *rayHead) authorize(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	header, _ := metadata.FromIncomingContext(ctx)
	if got := header.Get("authorization"); h.token != "" && (len(got) != 1 || got[0] != "Bearer "+h.token) {
		return nil, status.Error(codes.Unauthenticated, "InvalidAuthToken: Authentication token is missing or incorrect")
	}
	return handler(ctx, request)
}

func (h *rayHead) GetClusterResourceState(
	context.Context, *autoscalerpb.GetClusterResourceStateRequest,
) (*autoscalerpb.GetClusterResourceStateReply, error) {
	h.version++
	return &autoscalerpb.GetClusterResourceStateReply{ClusterResourceState: &autoscalerpb.ClusterResourceState{
		ClusterResourceStateVersion: h.version, ClusterSessionName: "session_2026-11-20_12-00-00_000000_1", NodeStates: h.nodes,
	}}, nil
}

func (h *rayHead) ReportAutoscalingState(
	context.Context, *autoscalerpb.ReportAutoscalingStateRequest,
) (*autoscalerpb.ReportAutoscalingStateReply, error) {
	return &autoscalerpb.ReportAutoscalingStateReply{}, nil
}

// InternalKVGet knows one key: whether Ray runs its autoscaler v2.
// GetAllNodeInfo returns none: the nodes have no labels.
func (h *rayHead) GetAllNodeInfo(
	context.Context, *raypb.GetAllNodeInfoRequest,
) (*raypb.GetAllNodeInfoReply, error) {
	return &raypb.GetAllNodeInfoReply{}, nil
}

func (h *rayHead) InternalKVGet(_ context.Context, r *raypb.InternalKVGetRequest) (*raypb.InternalKVGetReply, error) {
	if string(r.GetKey()) == "__autoscaler_v2_enabled" {
		return &raypb.InternalKVGetReply{Status: &raypb.GcsStatus{}, Value: []byte("1")}, nil
	}
	return &raypb.InternalKVGetReply{Status: &raypb.GcsStatus{Code: 17, Message: "Failed to find the key"}}, nil
}

// idleNode returns a node that has been idle for an hour. Nodes have different numbers, and 0 is the head's.
func idleNode(number int, pod, group string, resources map[string]float64) *autoscalerpb.NodeState {
	id := make([]byte, 28)
	id[0], id[1], id[2] = 1, byte(number), byte(number>>8)
	return &autoscalerpb.NodeState{NodeId: id, InstanceId: pod, RayNodeTypeName: group,
		Status: autoscalerpb.NodeStatus_IDLE, IdleDurationMs: 3_600_000,
		TotalResources: resources, AvailableResources: resources}
}
