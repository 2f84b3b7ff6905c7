package probe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Check runs a handler once and returns nil on success.
func (t Target) Check(ctx context.Context, h corev1.ProbeHandler) error {
	switch {
	case h.HTTPGet != nil:
		return t.checkHTTP(ctx, h.HTTPGet)
	case h.TCPSocket != nil:
		return t.checkTCP(ctx, h.TCPSocket)
	case h.Exec != nil:
		if gets, ok := healthGets(h.Exec.Command); ok {
			return t.checkHealth(ctx, gets)
		}
		var output bytes.Buffer
		if err := t.Exec(ctx, h.Exec.Command, &output); err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(output.Bytes()))
		}
		return nil
	}
	return fmt.Errorf("unsupported probe: want exec, httpGet or tcpSocket")
}

var (
	wgetHealth   = regexp.MustCompile(`^wget --tries 1 -T \d+ -q -O- http://localhost:(\d+/\S+) \| grep success$`)
	pythonHealth = regexp.MustCompile(
		`^python -c "import urllib.request; r=urllib.request.urlopen\('http://localhost:(\d+/[^']+)', timeout=\d+\); ` +
			`exit\(0 if b'success' in r.read\(\) else 1\)"$`,
	)
)

// healthGets recognizes the commands that KubeRay uses as probes for Ray before 2.53 and returns port/path of each
// request. The commands name localhost, which all pods share here, so Check sends the requests to the pod's address.
func healthGets(command []string) (gets []string, ok bool) {
	if len(command) != 3 || command[1] != "-c" {
		return nil, false
	}
	for _, part := range strings.Split(command[2], " && ") {
		found := wgetHealth.FindStringSubmatch(part)
		if found == nil {
			found = pythonHealth.FindStringSubmatch(part)
		}
		if found == nil {
			return nil, false
		}
		gets = append(gets, found[1])
	}
	return gets, true
}

func (t Target) checkHealth(ctx context.Context, gets []string) error {
	for _, get := range gets {
		body, err := httpGet(ctx, "http://"+t.IP+":"+get, nil)
		if err != nil {
			return err
		}
		if !bytes.Contains(body, []byte("success")) {
			return fmt.Errorf("GET %s: no success in %q", get, body)
		}
	}
	return nil
}

func (t Target) checkHTTP(ctx context.Context, get *corev1.HTTPGetAction) error {
	address, err := t.address(get.Host, get.Port)
	if err != nil {
		return err
	}
	scheme := strings.ToLower(string(get.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	_, err = httpGet(ctx, scheme+"://"+address+"/"+strings.TrimPrefix(get.Path, "/"), get.HTTPHeaders)
	return err
}

func (t Target) checkTCP(ctx context.Context, socket *corev1.TCPSocketAction) error {
	address, err := t.address(socket.Host, socket.Port)
	if err != nil {
		return err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// address returns host:port of a probe. The port is a number or the name of a container port.
func (t Target) address(host string, port intstr.IntOrString) (string, error) {
	if host == "" || host == "localhost" || host == "127.0.0.1" {
		host = t.IP
	}
	if port.Type == intstr.Int {
		return net.JoinHostPort(host, strconv.Itoa(port.IntValue())), nil
	}
	for _, p := range t.Ports {
		if p.Name == port.StrVal {
			return net.JoinHostPort(host, strconv.Itoa(int(p.ContainerPort))), nil
		}
	}
	return "", fmt.Errorf("finding port %q: the container has no port with this name", port.StrVal)
}

// client opens a connection for each request, so that no connection outlives a pod.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func httpGet(ctx context.Context, url string, headers []corev1.HTTPHeader) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		request.Header.Add(h.Name, h.Value)
	}
	reply, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, 10<<10))
	if err != nil {
		return nil, err
	}
	if reply.StatusCode < 200 || reply.StatusCode >= 400 {
		return nil, fmt.Errorf("GET %s: %s", url, reply.Status)
	}
	return body, nil
}
