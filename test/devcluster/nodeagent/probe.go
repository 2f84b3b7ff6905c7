package nodeagent

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
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// watchProbes keeps the container's started and ready up to date and restarts it when it does not live, with the
// kubelet's rules: nothing else is probed before the startup probe has succeeded, a container without a readiness
// probe is ready once it has started.
func (c *container) watchProbes(ctx context.Context, proc *process) {
	c.setReady(c.spec.StartupProbe == nil, c.spec.StartupProbe == nil && c.spec.ReadinessProbe == nil)
	if !c.passStartup(ctx, proc) {
		return
	}
	c.setReady(true, c.spec.ReadinessProbe == nil)
	var probes sync.WaitGroup
	defer probes.Wait()
	if probe := c.spec.ReadinessProbe; probe != nil {
		probes.Go(func() {
			c.probe(ctx, probe, proc.started, func(ok bool) bool { c.setReady(true, ok); return true })
		})
	}
	if probe := c.spec.LivenessProbe; probe != nil {
		probes.Go(func() { c.probe(ctx, probe, proc.started, c.endsUnlessAlive(probe, proc)) })
	}
}

// passStartup returns true once the startup probe has succeeded, or there is none.
func (c *container) passStartup(ctx context.Context, proc *process) bool {
	probe := c.spec.StartupProbe
	if probe == nil {
		return true
	}
	passed := false
	ends := c.endsUnlessAlive(probe, proc)
	c.probe(ctx, probe, proc.started, func(ok bool) bool {
		passed = ok
		return !ok && ends(ok)
	})
	return passed
}

// endsUnlessAlive returns what to do with a verdict of a liveness or startup probe: a failed one ends the process,
// and the restart policy decides about the rest.
func (c *container) endsUnlessAlive(probe *corev1.Probe, proc *process) func(bool) bool {
	return func(alive bool) bool {
		if alive {
			return true
		}
		c.pod.log.Warn("probe failed, container will be stopped", "container", c.spec.Name)
		grace := c.pod.grace(probe.TerminationGracePeriodSeconds)
		go c.stop(proc, time.Now().Add(grace), nil)
		return false
	}
}

// probe asks again and again and passes on each verdict, the first time and when it changes: success or failure as
// often in a row as the thresholds say. It ends with ctx or when verdict returns false.
func (c *container) probe(ctx context.Context, p *corev1.Probe, started time.Time, verdict func(ok bool) bool) {
	period := seconds(p.PeriodSeconds, 10)
	due := time.NewTimer(time.Until(started.Add(seconds(p.InitialDelaySeconds, 0))))
	defer due.Stop()
	count := streak{success: max(p.SuccessThreshold, 1), failure: orDefault(p.FailureThreshold, 3)}
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
		}
		due.Reset(period)
		asking, cancel := context.WithTimeout(ctx, seconds(p.TimeoutSeconds, 1))
		err := c.check(asking, p.ProbeHandler)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if ok, decided := count.add(err == nil); decided && !verdict(ok) {
			return
		}
	}
}

// streak turns single results into verdicts.
type streak struct {
	success, failure int32
	last             bool
	length           int32
}

// add takes one result. decided is true when it completes a row that is long enough.
func (s *streak) add(ok bool) (verdict, decided bool) {
	if s.length == 0 || ok != s.last {
		s.last, s.length = ok, 0
	}
	s.length++
	threshold := s.failure
	if ok {
		threshold = s.success
	}
	return ok, s.length == threshold || (s.length > threshold && !ok)
}

// check asks one handler once; nil means success.
func (c *container) check(ctx context.Context, h corev1.ProbeHandler) error {
	switch {
	case h.HTTPGet != nil:
		return c.checkHTTP(ctx, h.HTTPGet)
	case h.TCPSocket != nil:
		return c.checkTCP(ctx, h.TCPSocket)
	case h.Exec != nil:
		if gets, ok := healthGets(h.Exec.Command); ok {
			return c.checkHealth(ctx, gets)
		}
		var output bytes.Buffer
		if err := c.exec(ctx, h.Exec.Command, nil, &output, &output); err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(output.Bytes()))
		}
		return nil
	}
	return fmt.Errorf("this kind of probe is not supported: want exec, httpGet or tcpSocket")
}

var (
	wgetHealth   = regexp.MustCompile(`^wget --tries 1 -T \d+ -q -O- http://localhost:(\d+/\S+) \| grep success$`)
	pythonHealth = regexp.MustCompile(
		`^python -c "import urllib.request; r=urllib.request.urlopen\('http://localhost:(\d+/[^']+)', timeout=\d+\); ` +
			`exit\(0 if b'success' in r.read\(\) else 1\)"$`,
	)
)

// healthGets recognises the commands that KubeRay uses as probes for Ray before 2.53 and returns the port/path of
// each request. They name localhost, which is the whole machine here, so they are asked for at the pod's address.
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

func (c *container) checkHealth(ctx context.Context, gets []string) error {
	for _, get := range gets {
		body, err := httpGet(ctx, "http://"+c.pod.ip+":"+get, nil)
		if err != nil {
			return err
		}
		if !bytes.Contains(body, []byte("success")) {
			return fmt.Errorf("asking %s: no success in %q", get, body)
		}
	}
	return nil
}

func (c *container) checkHTTP(ctx context.Context, get *corev1.HTTPGetAction) error {
	address, err := c.address(get.Host, get.Port)
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

func (c *container) checkTCP(ctx context.Context, socket *corev1.TCPSocketAction) error {
	address, err := c.address(socket.Host, socket.Port)
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

// address resolves a probe's port, by number or by the name of a container port, at the pod or the host it names.
func (c *container) address(host string, port intstr.IntOrString) (string, error) {
	if host == "" || host == "localhost" || host == "127.0.0.1" {
		host = c.pod.ip
	}
	if port.Type == intstr.Int {
		return net.JoinHostPort(host, strconv.Itoa(port.IntValue())), nil
	}
	for _, p := range c.spec.Ports {
		if p.Name == port.StrVal {
			return net.JoinHostPort(host, strconv.Itoa(int(p.ContainerPort))), nil
		}
	}
	return "", fmt.Errorf("finding port %q: the container has no port of that name", port.StrVal)
}

// probeClient opens a connection per request, so that none outlives a pod.
var probeClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func httpGet(ctx context.Context, url string, headers []corev1.HTTPHeader) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		request.Header.Add(h.Name, h.Value)
	}
	reply, err := probeClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, 10<<10))
	if err != nil {
		return nil, err
	}
	if reply.StatusCode < 200 || reply.StatusCode >= 400 {
		return nil, fmt.Errorf("asking %s: %s", url, reply.Status)
	}
	return body, nil
}

func seconds(n, otherwise int32) time.Duration {
	return time.Duration(orDefault(n, otherwise)) * time.Second
}

func orDefault(n, otherwise int32) int32 {
	if n == 0 {
		return otherwise
	}
	return n
}
