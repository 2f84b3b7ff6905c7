package printer

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// mostGuardsShown bounds the pods that are named for each group.
const mostGuardsShown = 5

// writeGuards says which pods node autoscalers do not evict; nothing if there are none.
func writeGuards(p *Page, c apiv1.Cluster) {
	if len(c.Guards) == 0 {
		return
	}
	p.Line("", "")
	p.Line("", "Guarded: node autoscalers do not evict these pods")
	for _, g := range c.Guards {
		if !isGroup(c.Groups, g.Group) {
			p.Line("  ", "head: "+guardText(g))
		}
	}
	for _, group := range c.Groups {
		var names []string
		for _, g := range c.Guards {
			if g.Group == group.Name && len(names) < mostGuardsShown {
				names = append(names, guardText(g))
			}
		}
		if group.Guarded > len(names) {
			names = append(names, fmt.Sprintf("%d more", group.Guarded-len(names)))
		}
		if group.Guarded > 0 {
			p.Line("  ", fmt.Sprintf("%s, %d of %d: %s", group.Name, group.Guarded, group.Current,
				strings.Join(names, ", ")))
		}
	}
}

func isGroup(groups []apiv1.Group, name string) bool {
	for i := range groups {
		if groups[i].Name == name {
			return true
		}
	}
	return false
}

// guardText names a pod, and whose guard it has if that is not Heliostat's.
func guardText(g apiv1.Guard) string {
	if g.By == "user" {
		return g.Pod + " (by its user)"
	}
	return g.Pod
}
