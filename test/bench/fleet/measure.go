package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

// counters are what the parts have used so far.
type counters struct {
	used map[string]rig.Usage
	// wire is what serve has read and written, in bytes, to heads and to the API server.
	wire int64
	// replies are those of the heads, one for each reading.
	replies int64
	apiCounts
	at time.Time
}

func (f *fleet) counters(ctx context.Context) (c counters, err error) {
	c = counters{used: map[string]rig.Usage{}, at: time.Now()}
	pids := map[string]int{"autoscaler serve": f.heliostat.PID(), "simulated heads": f.heads.cmd.Process.Pid,
		"this command": os.Getpid()}
	for _, program := range []string{"kube-apiserver", "etcd"} {
		if pid := rig.ChildOf(os.Getpid(), program); pid != 0 {
			pids[program] = pid
		}
	}
	for name, pid := range pids {
		if c.used[name], err = rig.UsageOf(pid); err != nil {
			return c, err
		}
	}
	if c.wire, err = wireOf(f.heliostat.PID()); err != nil {
		return c, err
	}
	if c.replies, err = f.heads.replies(); err != nil {
		return c, err
	}
	c.apiCounts, err = f.apiServer(ctx)
	return c, err
}

// wireOf returns how many bytes a process has read and written.
func wireOf(pid int) (sum int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if name, count, _ := strings.Cut(strings.TrimSpace(line), ": "); name == "rchar" || name == "wchar" {
			n, _ := strconv.ParseInt(count, 10, 64)
			sum += n
		}
	}
	return sum, nil
}

// apiCounts are counts of the API server: calls of others than this command, and calls that it rejected.
type apiCounts struct{ calls, rejected float64 }

func (f *fleet) apiServer(ctx context.Context) (c apiCounts, err error) {
	text, err := f.kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return c, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		count, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		switch {
		case err != nil:
		case strings.HasPrefix(line, "apiserver_request_total{"):
			c.calls += count
		case strings.HasPrefix(line, "apiserver_flowcontrol_rejected_requests_total{"):
			c.rejected += count
		}
	}
	c.calls -= float64(f.calls.Load())
	return c, nil
}

// measure samples ages for so long, and prints everything.
func (f *fleet) measure(ctx context.Context, d *demand, long time.Duration) error {
	profiled := make(chan error, 1)
	go func() { profiled <- f.keepProfiles(ctx, long/2) }()
	before, err := f.counters(ctx)
	if err != nil {
		return err
	}
	d.begin()
	ages := map[bool][]time.Duration{}
	for i := range 10 {
		time.Sleep(time.Until(before.at.Add(long * time.Duration(i+1) / 10)))
		if err := f.sample(ctx, d, ages); err != nil {
			return err
		}
	}
	after, err := f.counters(ctx)
	if err != nil {
		return err
	}
	patched, late := d.end()
	fmt.Printf("\n%d RayClusters, %d of them busy, for %.0f s\n\n", len(f.owners), d.busy,
		after.at.Sub(before.at).Seconds())
	fmt.Printf("%-44s %8s %9s %9s %9s\n", "milliseconds", "count", "p50", "p99", "max")
	row("age of the data behind decisions, busy", ages[true])
	row("age of the data behind decisions, at rest", ages[false])
	row("demand → patch, busy", patched[true])
	row("demand → patch, at rest", patched[false])
	if late > 0 {
		fmt.Printf("%d bursts were not served, or their workers not removed, in %v\n", late, patience)
	}
	f.printUse(before, after)
	return errors.Join(f.printSize(ctx), <-profiled)
}

// sample adds the ages of the data behind all decisions, of RayClusters that are busy and of those at rest.
func (f *fleet) sample(ctx context.Context, d *demand, ages map[bool][]time.Duration) error {
	list, err := f.list(ctx)
	if err != nil {
		return err
	}
	for _, cluster := range list {
		var i int
		if _, err := fmt.Sscanf(cluster.Name, "cluster-%d", &i); err == nil && cluster.DataAgeSeconds != nil {
			age := time.Duration(*cluster.DataAgeSeconds * float64(time.Second))
			ages[d.active[i].Load()] = append(ages[d.active[i].Load()], age)
		}
	}
	return nil
}

func row(what string, times []time.Duration) {
	slices.Sort(times)
	at := func(q float64) float64 {
		if len(times) == 0 {
			return 0
		}
		return float64(times[min(int(q*float64(len(times))), len(times)-1)].Microseconds()) / 1000
	}
	fmt.Printf("%-44s %8d %9.0f %9.0f %9.0f\n", what, len(times), at(0.5), at(0.99), at(1))
}

// printUse prints what each part has used between two counts.
func (f *fleet) printUse(before, after counters) {
	long := after.at.Sub(before.at).Seconds()
	fmt.Println()
	for _, name := range []string{"autoscaler serve", "simulated heads", "kube-apiserver", "etcd", "this command"} {
		if now, runs := after.used[name]; runs {
			fmt.Printf("%-44s %6.2f cores; resident %d MiB, peak %d MiB\n", name,
				(now.CPU-before.used[name].CPU).Seconds()/long, now.Resident>>20, now.Peak>>20)
		}
	}
	fmt.Printf("%-44s %6.2f cores; resident %d MiB\n", "as many Python sidecars",
		0.02*float64(len(f.owners)), 101*len(f.owners))
	fmt.Printf("%-44s %6.2f MiB/s\n", "read and written by serve", float64(after.wire-before.wire)/(1<<20)/long)
	fmt.Printf("%-44s %6.0f /s\n", "readings of heads", float64(after.replies-before.replies)/long)
	fmt.Printf("%-44s %6.1f /s; %.0f rejected\n", "API server calls, without this command's",
		(after.calls-before.calls)/long, after.rejected-before.rejected)
}

// printSize prints how many goroutines and file descriptors serve has.
func (f *fleet) printSize(ctx context.Context) error {
	text, err := f.pprof(ctx, "goroutine?debug=1")
	if err != nil {
		return err
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", f.heliostat.PID()))
	first, _, _ := strings.Cut(string(text), "\n")
	fmt.Printf("%s; %d file descriptors\n", first, len(files))
	return err
}

// keepProfiles keeps profiles of serve in the folder that PROFILES names.
func (f *fleet) keepProfiles(ctx context.Context, long time.Duration) error {
	folder := os.Getenv("PROFILES")
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, path := range map[string]string{
		"cpu":    fmt.Sprintf("profile?seconds=%d", int(long.Seconds())),
		"allocs": fmt.Sprintf("allocs?seconds=%d", int(long.Seconds())), "heap": "heap?gc=1",
	} {
		text, err := f.pprof(ctx, path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "fleet-"+name+".pprof"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) pprof(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.profile+"/debug/pprof/"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := f.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading a profile: %w", err)
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
