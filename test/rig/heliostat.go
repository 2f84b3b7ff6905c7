package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Heliostat is a running `autoscaler serve` process.
type Heliostat struct {
	*Process
	// URL is the address of its REST API.
	URL string
}

// source returns the root directory of the repository.
func source(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "heliostat.dev/heliostat").Output()
	if err != nil {
		return "", fmt.Errorf("finding Heliostat's source: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Build returns the path of the autoscaler program. This is the value of HELIOSTAT_PROGRAM, if set. Otherwise, Build
// compiles the program into dir.
func Build(ctx context.Context, dir string) (string, error) {
	if program := os.Getenv("HELIOSTAT_PROGRAM"); program != "" {
		return program, nil
	}
	root, err := source(ctx)
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "autoscaler")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/autoscaler")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building Heliostat: %w: %s", err, bytes.TrimSpace(out))
	}
	return program, nil
}

// Serve starts `autoscaler serve` with --mode managed and returns when it is ready. Heliostat then scales every
// RayCluster that does not set a mode of its own.
func (r *Rig) Serve(ctx context.Context, arguments ...string) (*Heliostat, error) {
	return r.ServeByDefault(ctx, append([]string{"--mode", "managed"}, arguments...)...)
}

// ServeByDefault starts `autoscaler serve` with the default mode, in which Heliostat scales only RayClusters that opt
// in.
func (r *Rig) ServeByDefault(ctx context.Context, arguments ...string) (*Heliostat, error) {
	address, err := FreeAddress(r.Cluster.Host())
	if err != nil {
		return nil, fmt.Errorf("starting Heliostat: %w", err)
	}
	h := &Heliostat{URL: "http://" + address}
	own := []string{"--kubeconfig", r.Cluster.Kubeconfig(), "--listen", address, "--insecure-no-auth"}
	arguments = append(own, arguments...)
	defer r.Cluster.Awaiting("Heliostat to be ready")()
	h.Process, err = Launch(ctx, r.Program, r.Dir, h.URL+"/readyz", r.HeliostatEnv, arguments...)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Call sends a request to Heliostat's REST API and returns the status and the body. If body is empty, it sends none.
func (h *Heliostat) Call(ctx context.Context, method, path, body string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // longer than any call takes
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, h.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("calling %s %s: %w", method, path, err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("calling %s %s: %w", method, path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("calling %s %s: %w", method, path, err)
	}
	return response.StatusCode, answer, nil
}

// RequestPath returns the REST path of a RayCluster's request_resources.
func RequestPath(namespace, name string) string {
	return "/v1/namespaces/" + namespace + "/rayclusters/" + name + "/request_resources"
}

// FreeAddress returns a host:port that is free.
func FreeAddress(host string) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
