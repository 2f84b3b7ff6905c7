package rig

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pressure is how long, since the first sample, some task waited for a core, at one time.
type pressure struct {
	at     time.Time
	waited time.Duration
}

// machine is what the kernel says at one time: how long some task waited for a core, and how long the host of a virtual
// machine kept each core from it, both since the machine started.
type machine struct {
	at     time.Time
	waited time.Duration
	stolen []time.Duration
}

// pressures are the samples since MeasurePressure.
var pressures struct {
	sync.Mutex
	begin   sync.Once
	last    machine
	samples []pressure
}

const (
	// sampleEvery is the time between two samples. If one is later by lateSample, the machine may have stood still.
	sampleEvery = 100 * time.Millisecond
	lateSample  = 100 * time.Millisecond
	// userHZ is the unit of /proc/stat (proc_stat(5) of Linux).
	userHZ = 10 * time.Millisecond
)

// MeasurePressure begins to record how busy the machine is, for Unhindered. It does nothing where the kernel does not
// measure that (CONFIG_PSI), and when it was called before. Start calls it.
func MeasurePressure() {
	pressures.begin.Do(func() {
		if !samplePressure() {
			return
		}
		go func() {
			for range time.Tick(sampleEvery) {
				samplePressure()
			}
		}()
	})
}

func samplePressure() bool {
	pressures.Lock() // before the files are read, so that samples are in order
	defer pressures.Unlock()
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return false
	}
	waited, ok := parsePressure(string(text))
	if !ok {
		return false
	}
	stat, _ := os.ReadFile("/proc/stat") // if it cannot be read, nothing was stolen
	now := machine{time.Now(), waited, parseStolen(string(stat))}
	var sum time.Duration
	if n := len(pressures.samples); n > 0 {
		sum = pressures.samples[n-1].waited + now.hindered(pressures.last)
	}
	pressures.last = now
	pressures.samples = append(pressures.samples, pressure{now.at, sum})
	return true
}

// hindered returns how much of the time since an earlier sample a task may have waited for a core: because others had
// it, because the host did, or because the machine stood still.
func (m machine) hindered(before machine) time.Duration {
	hindered := max(0, m.waited-before.waited)
	for k := range min(len(m.stolen), len(before.stolen)) {
		hindered = max(hindered, m.stolen[k]-before.stolen[k])
	}
	if late := m.at.Sub(before.at) - sampleEvery; late > lateSample {
		hindered = max(hindered, late)
	}
	return min(hindered, m.at.Sub(before.at))
}

// parseStolen returns the column "steal" of each core in /proc/stat.
func parseStolen(text string) (stolen []time.Duration) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") || fields[0] == "cpu" {
			continue
		}
		ticks, err := strconv.ParseInt(fields[8], 10, 64)
		if err != nil {
			return nil
		}
		stolen = append(stolen, time.Duration(ticks)*userHZ)
	}
	return stolen
}

// parsePressure returns the total of the line "some" of /proc/pressure/cpu, which is in microseconds
// (Documentation/accounting/psi.rst of Linux).
func parsePressure(text string) (time.Duration, bool) {
	for line := range strings.Lines(text) {
		_, total, found := strings.Cut(strings.TrimSpace(line), "total=")
		if !found || !strings.HasPrefix(line, "some ") {
			continue
		}
		micros, err := strconv.ParseInt(total, 10, 64)
		return time.Duration(micros) * time.Microsecond, err == nil
	}
	return 0, false
}

// Unhindered returns how much of the time between from and to every task that could run had a core. A bound on it holds
// on a quiet machine as a bound on the whole time does, and a busy machine cannot break it. Where the kernel does not
// measure the pressure, it returns the whole time.
func Unhindered(from, to time.Time) time.Duration {
	samplePressure()
	pressures.Lock()
	defer pressures.Unlock()
	return unhindered(pressures.samples, from, to)
}

func unhindered(samples []pressure, from, to time.Time) time.Duration {
	return max(0, to.Sub(from)-(waitedAt(samples, to)-waitedAt(samples, from)))
}

// waitedAt returns the total at a time, in a line between the samples around it. Before the first and after the last
// sample it is as it is there.
func waitedAt(samples []pressure, at time.Time) time.Duration {
	i, found := slices.BinarySearchFunc(samples, at, func(p pressure, at time.Time) int { return p.at.Compare(at) })
	switch {
	case len(samples) == 0:
		return 0
	case i == len(samples):
		return samples[i-1].waited
	case found || i == 0:
		return samples[i].waited
	}
	before, after := samples[i-1], samples[i]
	share := float64(at.Sub(before.at)) / float64(after.at.Sub(before.at))
	return before.waited + time.Duration(share*float64(after.waited-before.waited))
}
