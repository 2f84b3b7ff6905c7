package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// prometheus is a real Prometheus that scrapes Heliostat every second.
type prometheus struct {
	url, targets, log string
	cmd               *exec.Cmd
}

const prometheusConfig = `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
- job_name: heliostat
  file_sd_configs: [{files: [%s], refresh_interval: 1s}]
`

// startPrometheus starts Prometheus and returns when it is ready. Prometheus stores its data in dir and listens on
// address.
func startPrometheus(ctx context.Context, dir, address string) (*prometheus, error) {
	path, err := program(ctx, "prometheus")
	if err != nil {
		return nil, err
	}
	rules, err := filepath.Abs(alertsFile)
	if err != nil {
		return nil, fmt.Errorf("starting Prometheus: %w", err)
	}
	p := &prometheus{
		url:     "http://" + address,
		targets: filepath.Join(dir, "targets.json"),
		log:     filepath.Join(dir, "prometheus.log"),
	}
	config := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, rules, p.targets), 0o644); err != nil {
		return nil, fmt.Errorf("starting Prometheus: %w", err)
	}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("starting Prometheus: %w", err)
	}
	defer log.Close()
	p.cmd = exec.Command(path, "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", address)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting Prometheus: %w", err)
	}
	for {
		response, err := http.Get(p.url + "/-/ready")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return p, nil
			}
		}
		select {
		case <-ctx.Done():
			p.stop()
			said, _ := os.ReadFile(p.log)
			return nil, fmt.Errorf("waiting for Prometheus: %w; it said: %s", context.Cause(ctx), said)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (p *prometheus) stop() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// scrape makes Prometheus scrape the server at the address from now on.
func (p *prometheus) scrape(address string) error {
	text, err := json.Marshal([]map[string]any{{"targets": []string{strings.TrimPrefix(address, "http://")}}})
	if err != nil {
		return fmt.Errorf("naming the target: %w", err)
	}
	if err := os.WriteFile(p.targets+".new", text, 0o644); err != nil {
		return fmt.Errorf("naming the target: %w", err)
	}
	if err := os.Rename(p.targets+".new", p.targets); err != nil {
		return fmt.Errorf("naming the target: %w", err)
	}
	return nil
}

// ask evaluates one expression and returns its number of series.
func (p *prometheus) ask(ctx context.Context, expression string) (int, error) {
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := p.get(ctx, "/api/v1/query?query="+url.QueryEscape(expression), &answer); err != nil {
		return 0, err
	}
	if answer.Status != "success" {
		return 0, fmt.Errorf("running %s: %s", expression, answer.Error)
	}
	return len(answer.Data.Result), nil
}

// unhealthy returns the rules that Prometheus could not evaluate.
func (p *prometheus) unhealthy(ctx context.Context) ([]string, error) {
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := p.get(ctx, "/api/v1/rules", &answer); err != nil {
		return nil, err
	}
	var bad []string
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "ok" {
				bad = append(bad, fmt.Sprintf("%s is %s: %s", rule.Name, rule.Health, rule.LastError))
			}
		}
	}
	return bad, nil
}

func (p *prometheus) get(ctx context.Context, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return fmt.Errorf("asking Prometheus: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking Prometheus: %w", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("reading Prometheus' answer to %s: %w", path, err)
	}
	return nil
}
