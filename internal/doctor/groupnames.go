package doctor

import (
	"fmt"
	"regexp"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// groupNames are checks of what worker groups are called.
var groupNames = []Check{
	{
		Code: "group-duplicate", Severity: raydemand.Error,
		Why: "two groups of one name share their pods, and without in-tree autoscaling the operator creates for one what it deletes for the other, " +
			"a dozen pods a second",
		look: perCluster(func(x *exam, o *Object, tell func(sight)) {
			names := map[string]int{}
			for _, g := range groupsOf(o, gpuinfo.Names{}) {
				if g.workers == nil || g.name == "" {
					continue
				}
				if names[g.name]++; names[g.name] > 1 {
					v := g.get("groupName")
					tell(sight{of: o, at: v.at, seen: g.name, fix: o.patch(op{Op: "replace", At: v.at, Value: fmt.Sprintf("%s-%d", g.name, names[g.name])})})
				}
			}
		}),
	},
	{
		Code: "group-name-unsuitable", Severity: raydemand.Error,
		Why: "the name becomes part of the pods' names and a label of theirs, so Kubernetes takes small letters, digits and hyphens, 63 at most, and " +
			"refuses every pod of the group",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			if g.name != "" && (!suitableName.MatchString(g.name) || len(g.name) > 63) {
				v := g.get("groupName")
				tell(sight{of: g.of, at: v.at, seen: g.name, fix: g.patch(op{Op: "replace", At: v.at, Value: suitable(g.name)})})
			}
		}),
	},
	{
		Code: "group-name-headgroup", Severity: raydemand.Warning,
		Why: "headgroup is what KubeRay calls the head, so Ray's nodes and pods of this group cannot be told from it",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			if v := g.get("groupName"); g.name == "headgroup" {
				tell(sight{of: g.of, at: v.at, seen: g.name, fix: g.patch(op{Op: "replace", At: v.at, Value: "workers"})})
			}
		}),
	},
}

// suitableName is a DNS subdomain, which names of pods are.
var suitableName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

var unsuitable = regexp.MustCompile(`[^a-z0-9]+`)

// suitable makes the nearest suitable name.
func suitable(name string) string {
	name = unsuitable.ReplaceAllString(strings.ToLower(name), "-")
	name = strings.Trim(name[:min(len(name), 63)], "-")
	if name == "" {
		return "workers"
	}
	return name
}
