package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"heliostat.dev/heliostat/test/chaos/apiproxy"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/shards/fleet"
	"heliostat.dev/heliostat/test/shards/variant"
)

// member is a place for one process: the proxy and the clock of all processes that follow each other there.
type member struct {
	proof *proof
	dir   string
	proxy *apiproxy.Proxy

	// turn is held while the process is suspended or replaced, and by whoever must be sure that it is not.
	turn sync.Mutex
	// process is the running one, and shard its name. Guarded by mu, as is ours: whether its end is wanted.
	mu      sync.Mutex
	process *rig.Process
	url     string
	shard   string
	ours    bool
}

func (p *proof) newMember(i int) (*member, error) {
	m := &member{proof: p, dir: filepath.Join(p.Dir, "member-"+strconv.Itoa(i))}
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return nil, err
	}
	if err := m.setClock(0); err != nil {
		return nil, err
	}
	api := p.Cluster.RESTConfig()
	api.UserAgent = "" // the process names itself
	var err error
	if m.proxy, err = apiproxy.Start(p.Cluster.Host(), api, func(apiproxy.Request) {}); err != nil {
		return nil, err
	}
	return m, m.proxy.Kubeconfig(m.kubeconfig())
}

func (m *member) kubeconfig() string { return filepath.Join(m.dir, "kubeconfig") }
func (m *member) clock() string      { return filepath.Join(m.dir, "clock") }

// setClock sets by how many seconds the wall clock is wrong. The file is replaced as a whole.
func (m *member) setClock(seconds int) error {
	next := m.clock() + ".next"
	if err := os.WriteFile(next, []byte(strconv.Itoa(seconds)), 0o644); err != nil {
		return err
	}
	return os.Rename(next, m.clock())
}

// start starts a process, and waits until it decides. The caller holds turn, or nobody else knows the member.
func (m *member) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	address, err := rig.FreeAddress(m.proof.Cluster.Host())
	if err != nil {
		return err
	}
	url := "http://" + address
	process, err := rig.Launch(ctx, m.proof.program, m.dir, url+"/readyz",
		[]string{variant.ClockVariable + "=" + m.clock()}, "--kubeconfig", m.kubeconfig(), "--listen", address,
		"--insecure-no-auth", "--mode", "managed", "--namespaces", fleet.Namespace, "--shards",
		"--drain-deadline", "24h")
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.process, m.url, m.shard, m.ours = process, url, "", false
	m.mu.Unlock()
	go m.watch(process)
	m.proof.mu.Lock()
	m.proof.processes++
	m.proof.mu.Unlock()
	alive, end := context.WithCancel(ctx)
	defer end()
	go func() {
		<-process.Ended()
		end()
	}()
	shard, err := shardAt(alive, url)
	if err != nil {
		return fmt.Errorf("%w; the log ends with:\n%s", err, process.LastLines(5))
	}
	m.mu.Lock()
	m.shard = shard
	m.mu.Unlock()
	return nil
}

// watch notes that a process ends by itself.
func (m *member) watch(process *rig.Process) {
	<-process.Ended()
	m.mu.Lock()
	ours := m.ours || m.process != process
	m.mu.Unlock()
	if !ours {
		m.proof.mu.Lock()
		defer m.proof.mu.Unlock()
		m.proof.ends = append(m.proof.ends,
			fmt.Errorf("a process has ended by itself; its log ends with:\n%s", process.LastLines(5)))
	}
}

// running returns the process and its name, and that its end is wanted if ending.
func (m *member) running(ending bool) (process *rig.Process, shard, url string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ours = m.ours || ending
	return m.process, m.shard, m.url
}

// kill kills the process.
func (m *member) kill() {
	if process, _, _ := m.running(true); process != nil {
		process.Kill()
	}
}

// suspend stops the process for a time.
func (m *member) suspend(ctx context.Context, d time.Duration) error {
	process, _, _ := m.running(false)
	if err := syscall.Kill(process.PID(), syscall.SIGSTOP); err != nil {
		return err
	}
	err := wait(ctx, d)
	if cont := syscall.Kill(process.PID(), syscall.SIGCONT); cont != nil {
		return cont
	}
	return err
}

// replace ends the process in an orderly way and starts another.
func (m *member) replace(ctx context.Context) error {
	process, _, _ := m.running(true)
	ending, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	process.Stop(ending)
	return m.start(ctx)
}

// close ends the process and the proxy.
func (m *member) close() {
	m.kill()
	_ = m.proxy.Close() // its listener is gone with this program at the latest
}

// shardAt waits until a process decides about RayClusters, and returns its name.
func shardAt(ctx context.Context, url string) (string, error) {
	for {
		list, err := own(ctx, url)
		if err == nil && len(list) > 0 {
			return list[0].Shard, nil
		}
		if waited := wait(ctx, 200*time.Millisecond); waited != nil {
			return "", fmt.Errorf("waiting until the shard at %s decides: %w: %w", url, waited, err)
		}
	}
}

// names returns the names of all shards that run.
func (p *proof) names() []string {
	var names []string
	for _, m := range p.members {
		_, shard, _ := m.running(false)
		names = append(names, shard)
	}
	return names
}
