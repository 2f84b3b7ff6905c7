package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Heliostat is `autoscaler serve` as a process of its own.
type Heliostat struct {
	// URL is where its REST API answers.
	URL  string
	Log  string
	cmd  *exec.Cmd
	done chan struct{}
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

// Serve starts `autoscaler serve` and returns when it is ready. Arguments are added to those it needs.
func (r *Rig) Serve(ctx context.Context, arguments ...string) (*Heliostat, error) {
	address, err := FreeAddress(r.Cluster.Host())
	if err != nil {
		return nil, fmt.Errorf("starting Heliostat: %w", err)
	}
	h := &Heliostat{URL: "http://" + address, Log: filepath.Join(r.Dir, "heliostat.log"), done: make(chan struct{})}
	log, err := os.OpenFile(h.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("starting Heliostat: %w", err)
	}
	arguments = append([]string{"serve", "--kubeconfig", r.Cluster.Kubeconfig(), "--listen", address, "--insecure-no-auth"}, arguments...)
	h.cmd = exec.Command(r.Program, arguments...)
	h.cmd.Stdout, h.cmd.Stderr = log, log
	h.cmd.Env = append([]string{"HOME=" + r.Dir, "TMPDIR=" + r.Dir, "PATH=" + os.Getenv("PATH")}, r.HeliostatEnv...)
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := start(h.cmd); err != nil {
		return nil, fmt.Errorf("starting Heliostat: %w", errors.Join(err, log.Close()))
	}
	go func() {
		h.cmd.Wait() // an end that nobody asked for shows as an API that does not answer
		log.Close()
		close(h.done)
	}()
	defer r.Cluster.Awaiting("Heliostat to be ready")()
	if err := h.ready(ctx); err != nil {
		h.Kill()
		return nil, fmt.Errorf("starting Heliostat: %w; its log ends with:\n%s", err, tail(h.Log, 5))
	}
	return h, nil
}

// ready waits until Heliostat says that it is.
func (h *Heliostat) ready(ctx context.Context) error {
	for {
		status, _, err := h.Call(ctx, http.MethodGet, "/readyz", "")
		if err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-h.done:
			return fmt.Errorf("it ended: %s", h.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("waiting for /readyz: %w", context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
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

// LastLines returns the last n lines of Heliostat's log.
func (h *Heliostat) LastLines(n int) string { return tail(h.Log, n) }

// PID is the process's id.
func (h *Heliostat) PID() int { return h.cmd.Process.Pid }

// Stop asks Heliostat to end, and kills it when it does not within the time of ctx.
func (h *Heliostat) Stop(ctx context.Context) {
	h.signal(syscall.SIGTERM)
	select {
	case <-h.done:
	case <-ctx.Done():
		h.Kill()
	}
}

// Kill ends Heliostat as a crash would and waits for its end.
func (h *Heliostat) Kill() {
	h.signal(syscall.SIGKILL)
	<-h.done
}

// signal reaches nothing when the process has just ended by itself, and need not.
func (h *Heliostat) signal(s syscall.Signal) { _ = h.cmd.Process.Signal(s) }

// FreeAddress returns a host:port nobody listens on.
func FreeAddress(host string) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// tail returns the last n lines of a file, "" when it cannot be read.
func tail(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
