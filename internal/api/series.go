package api

import (
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// chartSpan is how far back a series reaches.
const chartSpan = 2 * time.Hour

// maxChartPoints bounds one cluster's series: at 72 bytes each, a thousand clusters keep at most 17 MB. A longer series
// becomes coarser: see chart.thin.
const maxChartPoints = 240

// chartResources are the recorded resources. With others, such as custom resources, users would determine how much
// memory is used.
var chartResources = [...]string{raydemand.GPU, raydemand.CPU}

// ChartAmounts are parallel to chartResources.
type ChartAmounts [len(chartResources)]raydemand.Amount

// Bundle returns the amounts under their names, zeros included.
func (a ChartAmounts) Bundle() raydemand.Bundle {
	bundle := make(raydemand.Bundle, len(chartResources))
	for i, name := range chartResources {
		bundle[name] = a[i]
	}
	return bundle
}

func (a *ChartAmounts) add(bundle raydemand.Bundle, times int64) {
	for i, name := range chartResources {
		a[i] = a[i].Plus(bundle[name].Times(times))
	}
}

// ChartPoint is a cluster at one moment. It holds until the next point.
type ChartPoint struct {
	At time.Time
	// Capacity is what the joined nodes have, the head included. Used is the part of it that is in use.
	Capacity, Used ChartAmounts
	// Waiting is what pending tasks, actors and placement groups request.
	Waiting ChartAmounts
	// Desired is the capacity when every group has its desired workers.
	Desired ChartAmounts
}

// same reports whether only the times differ.
func (p ChartPoint) same(q ChartPoint) bool {
	q.At = p.At
	return p == q
}

// ChartPointOf sums up one decision.
func ChartPointOf(at time.Time, snapshot planner.Snapshot, plan planner.Plan) ChartPoint {
	p := ChartPoint{At: at}
	if head := snapshot.Head; head != nil {
		p.addNode(*head)
		total := head.Total
		if total == nil {
			total = head.Resources
		}
		p.Desired.add(total, 1)
	}
	for _, node := range snapshot.Nodes {
		if node.State == planner.Running || node.State == planner.Idle {
			p.addNode(node)
		}
	}
	for _, group := range plan.Groups {
		p.Desired.add(group.Resources, int64(group.Desired))
	}
	for _, request := range snapshot.Requests {
		p.Waiting.add(request.Bundle, request.Count)
	}
	for _, gang := range snapshot.Gangs {
		for _, bundle := range gang.Bundles {
			p.Waiting.add(bundle, 1)
		}
	}
	return p
}

func (p *ChartPoint) addNode(node planner.Node) {
	total, available := node.Total, node.Available
	if total == nil {
		total, available = node.Resources, node.Resources
	}
	p.Capacity.add(total, 1)
	p.Used.add(total, 1)
	p.Used.add(available, -1)
}

// chart is one cluster's points, oldest first.
type chart struct {
	points []ChartPoint
	// step is the shortest time between two points. It grows when the line gets too long.
	step time.Duration
}

// Add appends a point unless it equals the last one. Points closer to each other than the step become one.
func (l *chart) Add(p ChartPoint) {
	for len(l.points) > 1 && p.At.Sub(l.points[1].At) >= chartSpan {
		l.points = l.points[1:]
	}
	if n := len(l.points); n > 0 {
		switch last := &l.points[n-1]; {
		case last.same(p):
			return
		case p.At.Sub(last.At) < l.step:
			*last = joinPoints(*last, p)
			return
		}
	}
	l.points = append(l.points, p)
	if len(l.points) > maxChartPoints {
		l.thin()
	}
}

// thin joins neighboring points, which halves the line. It loses the exact time within two steps, but no value: a peak
// of demand stays visible.
func (l *chart) thin() {
	thinned := make([]ChartPoint, 0, maxChartPoints+1)
	for i := 0; i+1 < len(l.points); i += 2 {
		thinned = append(thinned, joinPoints(l.points[i], l.points[i+1]))
	}
	if len(l.points)%2 == 1 {
		thinned = append(thinned, l.points[len(l.points)-1])
	}
	l.points = thinned
	l.step = max(2*time.Second, 2*l.step)
}

// joinPoints keeps the earlier time, the higher demand and the later capacity.
func joinPoints(earlier, later ChartPoint) ChartPoint {
	joined := later
	joined.At = earlier.At
	for i := range chartResources {
		joined.Waiting[i] = max(earlier.Waiting[i], later.Waiting[i])
		joined.Used[i] = max(earlier.Used[i], later.Used[i])
	}
	return joined
}

// Points returns a copy of the line.
func (l *chart) Points() []ChartPoint { return append([]ChartPoint(nil), l.points...) }

// Charts keeps, for the last two hours, how much each RayCluster requested and had, for the charts of the page. It
// gets every decision, and is empty after a restart. The zero value is ready to use. It is safe for concurrent use.
type Charts struct {
	mu    sync.Mutex
	lines map[nodepool.ClusterKey]*chart
}

// Add appends a point to the cluster's line.
func (f *Charts) Add(key nodepool.ClusterKey, p ChartPoint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lines == nil {
		f.lines = map[nodepool.ClusterKey]*chart{}
	}
	line := f.lines[key]
	if line == nil {
		line = &chart{}
		f.lines[key] = line
	}
	line.Add(p)
}

// Forget removes the line of a deleted cluster.
func (f *Charts) Forget(key nodepool.ClusterKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.lines, key)
}

// Points returns the cluster's line, oldest first; empty if nothing was recorded yet.
func (f *Charts) Points(key nodepool.ClusterKey) []ChartPoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	if line := f.lines[key]; line != nil {
		return line.Points()
	}
	return nil
}
