// Command forecast compares ways to start workers before they are needed. It replays traces of demand through the model
// of a worker group in internal/forecast and prints, for each method, how much more the workers cost than without it,
// how much less demand waits, and what is paid for an hour less.
//
//	go run ./bench/forecast -start 5m
//	go run ./bench/forecast -start 5m -trace philly=philly.csv -groups 3
//
// Without -trace, the traces are generated from -seed (see generate.go). A file is CSV with a header and one job per
// line; see read.go for its columns. Equal flags give equal bytes. Nothing is downloaded.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/forecast"
)

// step is the resolution of the traces.
const step = time.Minute

// trace is the demand of a worker group, one number per step.
type trace struct {
	name   string
	begins time.Time
	demand []int32
}

type options struct {
	seed   uint64
	group  forecast.Group
	price  float64
	jobs   jobOptions
	traces []string
	// learn is how long methods learn before what they do counts.
	learn time.Duration
	// details prints a table of each trace too.
	details bool
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the generated traces")
	flag.DurationVar(&o.group.Start, "start", 5*time.Minute, "how long a worker takes to start")
	flag.DurationVar(&o.group.IdleTimeout, "idle-timeout", time.Minute, "how long a worker may be idle")
	flag.DurationVar(&o.learn, "learn", forecast.Span, "how much of each trace comes before the part that counts")
	flag.BoolVar(&o.details, "details", false, "print all numbers of each trace too")
	flag.Float64Var(&o.price, "price", 1, "price of a worker per hour")
	flag.IntVar(&o.jobs.perWorker, "gpus-per-worker", 8, "GPUs of a worker, for traces of jobs")
	flag.IntVar(&o.jobs.groups, "groups", 3, "how many groups of a file to replay, those with the most work first")
	flag.Func("trace", "NAME=FILE with jobs (repeatable); without it, the traces are generated",
		func(text string) error {
			o.traces = append(o.traces, text)
			return nil
		})
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-forecast:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.group.Start < 0 || o.group.Start > 24*time.Hour || o.group.IdleTimeout < 0 || o.jobs.perWorker < 1 ||
		o.learn < 3*24*time.Hour || o.learn%forecast.Slot != 0 {
		return fmt.Errorf("-start is %v, -idle-timeout %v, -gpus-per-worker %d, -learn %v: want 0 to 24h, 0 or more, "+
			"1 or more, and 72h or more in steps of %v", o.group.Start, o.group.IdleTimeout, o.jobs.perWorker, o.learn,
			forecast.Slot)
	}
	o.jobs.shortest = o.group.Start
	traces := generated(o.seed)
	if len(o.traces) > 0 {
		traces = nil
	}
	for _, text := range o.traces {
		name, file, found := strings.Cut(text, "=")
		if !found {
			return fmt.Errorf("-trace is %q, want NAME=FILE", text)
		}
		read, err := readJobs(name, file, o.jobs)
		if err != nil {
			return err
		}
		traces = append(traces, read...)
	}
	var results []result
	for _, t := range traces {
		if length := time.Duration(len(t.demand)) * step; length < o.learn+24*time.Hour {
			return fmt.Errorf("trace %s is %v long, want %v or more: -learn and a day", t.name, length,
				o.learn+24*time.Hour)
		}
		results = append(results, replay(t, o))
		if o.details {
			fmt.Println(results[len(results)-1].table(o))
		}
	}
	if len(results) > 0 {
		fmt.Print(curves(results, o))
	}
	return nil
}
