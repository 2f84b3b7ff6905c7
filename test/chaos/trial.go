package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"heliostat.dev/heliostat/test/chaos/apiproxy"
	"heliostat.dev/heliostat/test/chaos/fleet"
	"heliostat.dev/heliostat/test/chaos/schedule"
	"heliostat.dev/heliostat/test/chaos/verdict"
	"heliostat.dev/heliostat/test/rig"
)

// maxInFlight is Heliostat's --max-in-flight. It is less than a RayCluster often launches at once, so that a process
// that forgets what is on its way is found.
const maxInFlight = 3

// trial is Heliostat with a fleet and a judge.
type trial struct {
	*program
	fleet *fleet.Fleet
	reals []*fleet.Real
	proxy *apiproxy.Proxy

	mu      sync.Mutex // guards judge, history and most
	judge   *verdict.Judge
	history *history
	most    int64 // memory

	// running is held by faults of our process, which must not happen twice at once. It also guards closed.
	running sync.Mutex
	closed  bool
	// heliostat is the running process, replaced when it is killed.
	heliostat atomic.Pointer[process]
	played    map[schedule.Kind]int
	// older is whether the storage went back in this trial.
	older atomic.Bool
}

// process is a Heliostat. ours is whether its end is the trial's doing.
type process struct {
	*rig.Heliostat
	ours atomic.Bool
}

// trial starts a fleet and Heliostat, and waits until all heads run. It may return a trial beside an error, which must
// be closed too.
func (p *program) trial(ctx context.Context) (*trial, error) {
	p.trials++
	t := &trial{program: p, played: map[schedule.Kind]int{}}
	t.judge = verdict.New(verdict.Bounds{
		Manager: "heliostat", Shadow: fleet.Shadows(p.clusters), MaxInFlight: maxInFlight, Lag: 10 * time.Second,
		Memory: 256 << 20, Slack: 32 << 20,
	})
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var err error
	if t.history, err = newHistory(filepath.Join(p.Dir, fmt.Sprintf("history-%d", p.trials))); err != nil {
		return t, err
	}
	clients, err := p.clients()
	if err != nil {
		return t, err
	}
	// No two dev clusters of a machine have the same third number of the host's address.
	network := "127.66." + strings.Split(p.Cluster.Host(), ".")[2]
	t.fleet, err = fleet.Start(ctx, clients, fmt.Sprintf("chaos-%d", p.trials), network, p.clusters, t.see)
	if err != nil {
		return t, err
	}
	if err := t.fleet.Ready(ctx); err != nil {
		return t, err
	}
	for i := range p.real {
		m, err := t.fleet.AddReal(ctx, p.Rig, i)
		if err != nil {
			return t, err
		}
		t.reals = append(t.reals, m)
	}
	if t.proxy, err = apiproxy.Start(p.Cluster.Host(), p.Cluster.RESTConfig(), t.wrote); err != nil {
		return t, err
	}
	if err := t.proxy.Kubeconfig(t.kubeconfig()); err != nil {
		return t, err
	}
	return t, t.serve(ctx)
}

// clients makes clients without a limit of their own.
func (p *program) clients() (clients fleet.Clients, err error) {
	config := p.Cluster.RESTConfig()
	config.QPS = -1
	if clients.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return clients, err
	}
	if clients.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return clients, err
	}
	clients.Create = func(ctx context.Context, object *unstructured.Unstructured) error { return p.Create(ctx, object) }
	return clients, nil
}

func (t *trial) kubeconfig() string { return filepath.Join(t.Dir, fmt.Sprintf("proxied-%d", t.trials)) }

// serve starts Heliostat and watches its end.
func (t *trial) serve(ctx context.Context) error {
	h, err := t.Serve(ctx, "--kubeconfig", t.kubeconfig(), "--namespaces", t.fleet.Namespace,
		"--max-in-flight", fmt.Sprint(maxInFlight), "--drain-deadline", "24h", "--log-level", "info")
	if err != nil {
		return err
	}
	p := &process{Heliostat: h}
	t.heliostat.Store(p)
	go func() {
		<-h.Ended()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		t.ended(ctx, p)
	}()
	return nil
}

// ended judges the end of a process. After the storage went back, a process that knows a later version must end by
// itself, and is started again as a kubelet would.
func (t *trial) ended(ctx context.Context, p *process) {
	if p.ours.Load() {
		return
	}
	log := p.LastLines(30)
	if !t.older.Load() || !strings.Contains(log, "went back from version") || strings.Contains(log, "panic") {
		t.see(verdict.Crash{At: time.Now(), Log: log})
		return
	}
	t.running.Lock()
	defer t.running.Unlock()
	if t.heliostat.Load() != p || t.closed {
		return // somebody has killed it since, and replaced it or not
	}
	t.restart(ctx)
}

// restart starts Heliostat again. A start that fails is its own fault, because it waits for an API server.
func (t *trial) restart(ctx context.Context) {
	if err := t.serve(ctx); err != nil && ctx.Err() == nil {
		t.see(verdict.Crash{At: time.Now(), Log: err.Error()})
	}
}

// kill kills Heliostat.
func (t *trial) kill() {
	if p := t.heliostat.Load(); p != nil {
		p.ours.Store(true)
		p.Kill()
	}
}

// see passes a fact to the judge.
func (t *trial) see(fact verdict.Fact) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if usage, ok := fact.(verdict.Usage); ok {
		t.most = max(t.most, usage.Bytes)
	}
	t.judge.See(fact)
	t.history.add(fact)
}

func (t *trial) violations() []verdict.Violation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.judge.Violations()
}

// wrote passes a write of Heliostat to the judge. Leases and Events say nothing about RayClusters, and a review asks
// what somebody may do.
func (t *trial) wrote(r apiproxy.Request) {
	if r.Resource == "leases" || r.Resource == "events" || strings.HasSuffix(r.Resource, "reviews") {
		return
	}
	t.see(verdict.Write{At: r.At, Verb: r.Verb, Resource: r.Resource, Name: r.Name, Answer: fmt.Sprint(r.Code)})
}

// round runs one round. An error is about the trial and says nothing about Heliostat.
func (t *trial) round(ctx context.Context, number int, faults []schedule.Fault) error {
	if err := t.leaveRest(func() error { return t.release(ctx) }); err != nil {
		return err
	}
	stop := t.sample(ctx)
	defer stop()
	working, ended := context.WithTimeout(ctx, t.storm)
	defer ended()
	work := t.work(working, number)
	err := t.play(ctx, faults)
	work.Wait()
	if err != nil {
		return err
	}
	t.see(verdict.Phase{At: time.Now(), Name: verdict.Calm})
	if err := t.hold(number); err != nil {
		return err
	}
	if err := t.calmDown(ctx, t.worked); err != nil {
		return err
	}
	t.see(verdict.Phase{At: time.Now(), Name: verdict.Rest})
	return wait(ctx, t.rest)
}

const (
	// simulatedSettles is an idle timeout of 3 s, a drain, and what the operator and Heliostat then write.
	simulatedSettles = 8 * time.Second
	// realSettles is the same with up to 5 s until a container has ended, on a busy machine.
	realSettles = 20 * time.Second
	// longestCalm is when a rest begins although work goes on, which then is a violation.
	longestCalm = 4 * time.Minute
)

// calmDown waits for the length of a calm, and until the work of the storm has been over for a while: what waits takes
// its turn on few workers, and on a real Ray as long as the machine lets it.
func (t *trial) calmDown(ctx context.Context, worked func() bool) error {
	begun := time.Now()
	for last := begun; ; {
		if err := wait(ctx, 500*time.Millisecond); err != nil {
			return err
		}
		now := time.Now()
		if !worked() {
			last = now
		}
		calm := now.Sub(begun)
		if calm >= longestCalm || calm >= t.calm && (last == begun || now.Sub(last) >= t.settles) {
			return nil
		}
	}
}

// worked reports whether the work of the storm has ended on each head.
func (t *trial) worked() bool {
	return !slices.ContainsFunc(t.reals, func(m *fleet.Real) bool { return !m.Worked() }) &&
		!slices.ContainsFunc(t.fleet.Members, func(m *fleet.Member) bool { return !m.Worked() })
}

// leaveRest begins the storm of a round and then releases the work of the round before. The rest must be over by then:
// the release takes as long as an actor on a real Ray needs for an answer, and workers are idle from its first moment.
func (t *trial) leaveRest(release func() error) error {
	if err := t.forget(); err != nil {
		return err
	}
	t.see(verdict.Phase{At: time.Now(), Name: verdict.Storm})
	return release()
}

// hold submits work that stays until the next round.
func (t *trial) hold(round int) error {
	for i, m := range t.fleet.Members {
		m.Hold(t.random(round, 1000+i))
	}
	for _, m := range t.reals {
		if err := m.Hold(); err != nil {
			return err
		}
	}
	return nil
}

// release ends the work of hold. Heads then forget their dead nodes, as a GCS does after some.
func (t *trial) release(ctx context.Context) error {
	for _, m := range t.fleet.Members {
		m.Release()
		m.Head.Forget()
	}
	for _, m := range t.reals {
		if err := m.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

// forget drops the history of earlier rounds.
func (t *trial) forget() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.history.restart()
}

// random returns the random source of a purpose in a round.
func (t *trial) random(round, purpose int) *rand.Rand {
	return rand.New(rand.NewPCG(t.seed, uint64(round)<<32|uint64(purpose)))
}

// work submits random work to all heads until ctx is done.
func (t *trial) work(ctx context.Context, round int) *sync.WaitGroup {
	var group sync.WaitGroup
	for i, m := range t.fleet.Members {
		group.Go(func() {
			random := t.random(round, i)
			for wait(ctx, 500*time.Millisecond+time.Duration(random.Int64N(int64(2*time.Second)))) == nil {
				m.Work(random)
			}
		})
	}
	for i, m := range t.reals {
		group.Go(func() {
			random := t.random(round, 2000+i)
			for wait(ctx, time.Second+time.Duration(random.Int64N(int64(4*time.Second)))) == nil {
				if err := m.Work(random); err != nil {
					return // its end is seen as work that waits or is lost
				}
			}
		})
	}
	return &group
}

// sample reports the memory of Heliostat until the function that it returns is called.
func (t *trial) sample(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		for wait(ctx, time.Second) == nil {
			if usage, err := rig.UsageOf(t.heliostat.Load().PID()); err == nil && usage.Resident > 0 {
				t.see(verdict.Usage{At: time.Now(), Bytes: usage.Resident})
			}
		}
	}()
	return stop
}

// close ends everything of the trial, and may be called on a trial that did not start.
func (t *trial) close() error {
	t.running.Lock()
	t.kill()
	t.closed = true
	t.running.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	for _, m := range t.reals {
		err = errors.Join(err, m.Close())
	}
	if t.fleet != nil {
		err = errors.Join(err, t.fleet.Stop(ctx))
	}
	if t.proxy != nil {
		err = errors.Join(err, t.proxy.Close())
	}
	return errors.Join(err, t.history.close())
}

// wait waits until d is over, or returns the error of ctx.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
