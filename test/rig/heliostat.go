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

// Heliostat is `autoscaler serve` as a process of its own.
type Heliostat struct {
	*Process
	// URL is where its REST API answers.
	URL string
}

// source is the repository's root, which the module of this package lies directly below.
func source(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "heliostat.dev/heliostat").Output()
	if err != nil {
		return "", fmt.Errorf("finding Heliostat's source: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Build puts the autoscaler program into dir and returns its path: the one that the variable HELIOSTAT_PROGRAM names, else
// one compiled from the source.
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

// Serve starts `autoscaler serve`, which scales every RayCluster that says nothing else, and returns when it is ready.
// Arguments are added to those it needs.
func (r *Rig) Serve(ctx context.Context, arguments ...string) (*Heliostat, error) {
	return r.ServeByDefault(ctx, append([]string{"--mode", "managed"}, arguments...)...)
}

// ServeByDefault does the same with the defaults, by which only RayClusters that ask for it are scaled.
func (r *Rig) ServeByDefault(ctx context.Context, arguments ...string) (*Heliostat, error) {
	address, err := FreeAddress(r.Cluster.Host())
	if err != nil {
		return nil, fmt.Errorf("starting Heliostat: %w", err)
	}
	h := &Heliostat{URL: "http://" + address}
	arguments = append([]string{"--kubeconfig", r.Cluster.Kubeconfig(), "--listen", address, "--insecure-no-auth"}, arguments...)
	defer r.Cluster.Awaiting("Heliostat to be ready")()
	h.Process, err = Launch(ctx, r.Program, r.Dir, h.URL+"/readyz", r.HeliostatEnv, arguments...)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Call sends a request to Heliostat's REST API, with a JSON body unless that is empty, and returns status and body.
func (h *Heliostat) Call(ctx context.Context, method, path, body string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // longer than the server takes for any answer
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

// RequestPath is the REST path of a RayCluster's request_resources.
func RequestPath(namespace, name string) string {
	return "/v1/namespaces/" + namespace + "/rayclusters/" + name + "/request_resources"
}

// FreeAddress returns a host:port nobody listens on.
func FreeAddress(host string) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
