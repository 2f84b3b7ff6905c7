package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// jobOptions say how jobs become demand for workers.
type jobOptions struct {
	// perWorker is how many GPUs a worker has: jobs are packed onto workers without a gap.
	perWorker int
	// groups is how many groups of a file are replayed.
	groups int
	// shortest is how long a job needs its workers at least. Work that is shorter than a start still waits for the
	// whole of it, and the model's demand does not get longer by waiting.
	shortest time.Duration
}

// columns are the names under which public traces have what is needed. A trace without a group is one group, and a job
// without a number of GPUs has one.
var columns = map[string][]string{
	"time":     {"timestamp", "submit_time", "gmt_create"},
	"duration": {"duration", "exec_time_seconds"},
	"gpus":     {"num_gpus", "gpu_num"},
	"group":    {"cluster", "vc"},
}

// job is one line of a trace, with the time in seconds since 1970.
type job struct {
	at, seconds int64
	gpus        int
}

// readJobs reads jobs from a CSV file. Times are "2006-01-02 15:04:05" in UTC or seconds since 1970, durations are
// seconds. It returns the groups with the most GPU time.
func readJobs(name, file string, o jobOptions) ([]trace, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading trace %s: %w", name, err)
	}
	defer f.Close()
	rows := csv.NewReader(f)
	rows.FieldsPerRecord = -1
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("reading trace %s: reading its header: %w", name, err)
	}
	at := map[string]int{}
	for what, names := range columns {
		at[what] = slices.IndexFunc(header, func(column string) bool { return slices.Contains(names, column) })
	}
	if at["time"] < 0 || at["duration"] < 0 {
		return nil, fmt.Errorf("reading trace %s: the header is %q, want a column of %q and one of %q", name, header,
			columns["time"], columns["duration"])
	}
	jobs := map[string][]job{}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading trace %s: %w", name, err)
		}
		group, j, err := jobOf(row, at)
		if err != nil {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("reading trace %s: line %d: %w", name, line, err)
		}
		if j.gpus > 0 && j.seconds > 0 {
			j.seconds = max(j.seconds, int64(o.shortest/time.Second))
			jobs[group] = append(jobs[group], j)
		}
	}
	return largest(name, jobs, o), nil
}

func jobOf(row []string, at map[string]int) (group string, j job, err error) {
	field := func(what string) string {
		if i := at[what]; i >= 0 && i < len(row) {
			return row[i]
		}
		return ""
	}
	j.gpus = 1
	if text := field("gpus"); text != "" {
		if j.gpus, err = strconv.Atoi(text); err != nil {
			return "", j, fmt.Errorf("the number of GPUs is %q, want a whole number", text)
		}
	}
	if text := field("duration"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "", j, fmt.Errorf("the duration is %q, want seconds", text)
		}
		j.seconds = int64(seconds)
	}
	text := field("time")
	if when, err := time.Parse(time.DateTime, text); err == nil {
		j.at = when.Unix()
	} else if j.at, err = strconv.ParseInt(text, 10, 64); err != nil {
		return "", j, fmt.Errorf("the time is %q, want %s or seconds since 1970", text, time.DateTime)
	}
	return field("group"), j, nil
}

// largest returns the groups with the most GPU time as traces, which all end when the last job of all comes.
func largest(name string, jobs map[string][]job, o jobOptions) []trace {
	type sized struct {
		name string
		size int64
	}
	var groups []sized
	var last int64
	for group, list := range jobs {
		s := sized{name: group}
		for _, j := range list {
			s.size += j.seconds * int64(j.gpus)
			last = max(last, j.at)
		}
		groups = append(groups, s)
	}
	slices.SortFunc(groups, func(a, b sized) int {
		if a.size != b.size {
			return int(min(max(b.size-a.size, -1), 1))
		}
		return strings.Compare(a.name, b.name)
	})
	var traces []trace
	for _, g := range groups[:min(o.groups, len(groups))] {
		traces = append(traces, demandOf(strings.TrimSpace(name+" "+g.name), jobs[g.name], last, o.perWorker))
	}
	return traces
}

// demandOf returns how many workers run the jobs, which begin when they come.
func demandOf(name string, jobs []job, last int64, perWorker int) trace {
	begins := jobs[0].at
	for _, j := range jobs {
		begins = min(begins, j.at)
	}
	begins -= begins % int64(step/time.Second)
	steps := (last-begins)/int64(step/time.Second) + 1
	changes := make([]int, steps+1)
	index := func(second int64) int64 { return min((second-begins)/int64(step/time.Second), steps) }
	for _, j := range jobs {
		changes[index(j.at)] += j.gpus
		changes[max(index(j.at+j.seconds), min(index(j.at)+1, steps))] -= j.gpus
	}
	t := trace{name, time.Unix(begins, 0).UTC(), make([]int32, steps)}
	gpus := 0
	for i := range t.demand {
		gpus += changes[i]
		t.demand[i] = int32((gpus + perWorker - 1) / perWorker)
	}
	return t
}
