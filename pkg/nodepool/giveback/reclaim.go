package giveback

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// ReclaimableAnnotation on a RayCluster, with the value "true", lets RayClusters of higher priority take GPUs from it.
const ReclaimableAnnotation = "heliostat.dev/reclaimable"

// ReclaimedAnnotation on a RayCluster holds what was taken from it within TakingsCount. Heliostat writes it with the
// reservation, so that the budget survives restarts.
const ReclaimedAnnotation = "heliostat.dev/reclaimed"

// TakingsCount is for how long a taking counts towards the budget.
const TakingsCount = time.Hour

// Offer is what a RayCluster could give back without ending work that cannot move: a worker, or all hosts of a
// multi-host replica.
type Offer struct {
	Group   string
	GPUs    int64
	Workers []OfferedWorker
	// Why says what its loss costs: "idle". Idle workers have no work at all.
	Why  string
	Idle bool
	// Since is since when the youngest of the workers runs.
	Since time.Time
}

// OfferedWorker is one worker of an Offer, and what its pod takes of its node.
type OfferedWorker struct {
	Pod, Node string
	Takes     landing.Quantities
}

// Pods returns the names of the workers of offers.
func Pods(offers []Offer) (pods []string) {
	for i := range offers {
		for _, w := range offers[i].Workers {
			pods = append(pods, w.Pod)
		}
	}
	return pods
}

// GPUsOf returns how many GPUs offers have together.
func GPUsOf(offers []Offer) (sum int64) {
	for i := range offers {
		sum += offers[i].GPUs
	}
	return sum
}

// Taking is GPUs that were taken from a RayCluster at a time.
type Taking struct {
	At   time.Time
	GPUs int64
}

// Recent returns the takings that count at a time. One that is dated later, by another clock, counts as now.
func Recent(takings []Taking, now time.Time) (recent []Taking) {
	for _, t := range takings {
		if t.At.After(now) {
			t.At = now
		}
		if now.Sub(t.At) < TakingsCount {
			recent = append(recent, t)
		}
	}
	return recent
}

// Taken returns how many GPUs were taken that count at a time.
func Taken(takings []Taking, now time.Time) (gpus int64) {
	for _, t := range Recent(takings, now) {
		gpus += t.GPUs
	}
	return gpus
}

// Takings returns the takings that count when a reservation begins, with the reservation itself.
func (r *Reservation) Takings(before []Taking) []Taking {
	return append(Recent(before, r.Began()), Taking{r.Began(), r.GPUs})
}

// TakingsText writes takings as the annotation has them: "2026-01-31T12:00:00Z 8, 2026-01-31T12:20:00Z 2".
func TakingsText(takings []Taking) string {
	texts := make([]string, len(takings))
	for i, t := range takings {
		texts[i] = t.At.UTC().Format(time.RFC3339) + " " + strconv.FormatInt(t.GPUs, 10)
	}
	return strings.Join(texts, ", ")
}

// ReadTakings reads the annotation.
func ReadTakings(text string) ([]Taking, error) {
	var takings []Taking
	for _, one := range strings.Split(text, ",") {
		at, gpus, _ := strings.Cut(strings.TrimSpace(one), " ")
		when, err := time.Parse(time.RFC3339, at)
		n, err2 := strconv.ParseInt(gpus, 10, 64)
		if err != nil || err2 != nil || n < 0 || n > MaxGPUs {
			return nil, fmt.Errorf("%q is not a time and a number of GPUs", strings.TrimSpace(one))
		}
		takings = append(takings, Taking{when, n})
	}
	return takings, nil
}
