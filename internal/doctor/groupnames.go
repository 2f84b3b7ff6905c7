package doctor

import (
	"fmt"
	"regexp"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// renameDuplicate gives the second group of a name a name of its own.
func renameDuplicate(o *Object, f raydemand.Finding) fix {
	g, found := groupOf(o, f)
	if !found {
		return byHand(o, f)
	}
	number := 1
	for _, other := range o.Cluster.Groups[:g.Workers.Index] {
		if other.Name == g.Name {
			number++
		}
	}
	return patch(o, replace(g.Path("groupName"), fmt.Sprintf("%s-%d", g.Name, number)))
}

// suitableName matches a DNS subdomain, as the names of pods must be. The operator lowers the group's name in them, and
// the label may have capitals (KubeRay 1.6.2, utils.PodName).
var suitableName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

func groupNameUnsuitable(_ *inventory, g rayGroup, report reporter) {
	if g.Name != "" && (!suitableName.MatchString(strings.ToLower(g.Name)) || len(g.Name) > 63) {
		report(renameGroup(g, suitable(g.Name)))
	}
}

var unsuitable = regexp.MustCompile(`[^a-z0-9]+`)

// suitable returns the nearest suitable name.
func suitable(name string) string {
	name = unsuitable.ReplaceAllString(strings.ToLower(name), "-")
	name = strings.Trim(name[:min(len(name), 63)], "-")
	if name == "" {
		return "workers"
	}
	return name
}

func groupNameHeadgroup(_ *inventory, g rayGroup, report reporter) {
	if g.Name == "headgroup" {
		report(renameGroup(g, "workers"))
	}
}

func renameGroup(g rayGroup, to string) occurrence {
	at := g.Path("groupName")
	return occurrence{Object: g.Of, Path: at, Seen: g.Name, Fix: patch(g.Of, replace(at, to))}
}
