package fleet

import (
	"fmt"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// keepSurge lowers the maximum by what the group keeps free for replacements, less one replica for each that is going.
// The maximum never falls below the minimum, one replica, or the pods that the group has: a surge stops nothing.
func (g *Group) keepSurge() {
	free := max(pods(g.Surge, g.Hosts)-vector.RoundUp(g.going, g.Hosts), 0)
	g.kept = max(min(free, g.MaxPods-max(g.MinPods, g.Hosts, g.Live)), 0)
	g.MaxPods -= g.kept
}

// MaxText names the maximum, with what is kept free below it: "4, with 1 more for replacements".
func (g *Group) MaxText() string {
	if g.kept == 0 {
		return fmt.Sprint(g.MaxPods)
	}
	return fmt.Sprintf("%d, with %d more for replacements", g.MaxPods, g.kept)
}
