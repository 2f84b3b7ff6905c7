package doctor

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// gpuDomain is the label of Ray nodes by which placement groups ask for one domain of fast links
// (docs/reference/facts.md#topology-of-a-placement-group).
const gpuDomain = "ray.io/gpu-domain"

// rayOfTopologies is the release of Ray 2 in which a placement group can ask for one domain, and the oldest that
// docs/howto/racks.md is for.
const rayOfTopologies = 60

// gpuDomainAbsent reports a group with GPUs whose pods are pinned to one domain that their Ray nodes do not name. They
// may name it with the node's own label, or with what --topology-label says of all Ray nodes.
func gpuDomainAbsent(x *inventory, g rayGroup, report reporter) {
	key, domain := pinnedDomain(g.Workers)
	if _, old := g.rayBefore(rayOfTopologies); key == "" || old || !g.requestsDevices() && !g.mayHaveGPUs() {
		return
	}
	names := map[string]bool{gpuDomain: true}
	for _, row := range landing.DomainLabels {
		names[row.Key] = true
	}
	for _, l := range x.Input.Reader.TopologyLabels {
		if l.Ray == gpuDomain || l.Node == key {
			return
		}
		names[l.Ray] = true
	}
	for name := range names {
		_, declared := g.Workers.Labels[name]
		if _, read := g.Workers.LabelSources[name]; declared || read {
			return
		}
	}
	at := g.Path("labels").Key(gpuDomain)
	report(occurrence{Path: at, Seen: fmt.Sprintf("its nodes have %s=%s", key, domain),
		Fix: patch(g.set(at, domain)).Hint(g.Of.afterChangedLabels())})
}

// afterChangedLabels says what becomes of the workers that run when the labels of a group change. KubeRay 1.6.2 counts
// them as a change of the spec: utils/util.go (GenerateHashWithoutReplicasAndWorkersToDelete), and
// raycluster_controller.go (shouldRecreatePodsForUpgrade).
func (o *Object) afterChangedLabels() string {
	switch {
	case o.Kind == "RayService" || o.Cluster.Owner.Kind == "RayService":
		return "the RayService then replaces its RayCluster and all workers, unless its upgradeStrategy is None"
	case o.Cluster.UpgradeStrategy == "Recreate":
		return "upgradeStrategy is Recreate: the operator then deletes all pods, also the head, which ends their work"
	}
	return "workers that run keep their labels until they are replaced"
}

// pinnedDomain returns the first label of a domain of which the group's pods accept one value, and the value.
func pinnedDomain(w *nodepool.WorkerGroup) (key, domain string) {
	for _, row := range landing.DomainLabels {
		if value, pinned := w.Pod.Pinned(row.Key); pinned && value != "" {
			return row.Key, value
		}
	}
	return "", ""
}

// gpuDomainDivided reports groups whose Ray nodes name one domain while their pods may be in several.
func gpuDomainDivided(x *inventory, g rayGroup, report reporter) {
	w := g.Workers
	domain, declared := w.Labels[gpuDomain]
	at := g.Path("labels").Key(gpuDomain)
	switch {
	case w.LabelSources[gpuDomain].Replica && !g.staysTogether():
		report(occurrence{Path: g.template().Path("affinity", "podAffinity"),
			Seen: fmt.Sprintf("numOfHosts %d, and %s is the name of the replica", w.NumOfHosts, gpuDomain),
			Fix: edit("require that the pods of a replica share a label of nodes, as in " +
				"docs/howto/racks.md#one-group-for-all-racks")})
	case !declared || g.staysTogether():
	default:
		if key, values := x.domainsOf(g); key != "" {
			report(occurrence{Path: at, Seen: fmt.Sprintf("%s, and its pods fit on nodes with %s=%s", domain, key,
				strings.Join(values, " and ")),
				Fix: edit("pin the group to one domain by its nodeSelector, and make one group for each")})
			return
		}
		if other := sameDomain(g); other != "" {
			report(occurrence{Path: at,
				Seen: domain + ", as group " + other + ", whose pods are on nodes of another domain",
				Fix:  edit("give each domain a value of its own")})
		}
	}
}

// staysTogether reports whether pods of the group require each other to be in one domain that is larger than a node.
func (g rayGroup) staysTogether() bool {
	return slices.ContainsFunc(g.Workers.Pod.Neighbors.Together, func(key string) bool {
		return key != landing.HostnameLabel
	})
}

// reference finds $(NAME) in the value of a variable; $$ is a $ that refers to nothing.
var reference = regexp.MustCompile(`\$\$|\$\(([^()]+)\)`)

// overrideUnresolved reports labels of RAY_OVERRIDE_LABELS that refer to a variable below it.
func overrideUnresolved(_ *inventory, g rayGroup, report reporter) {
	env := g.rayContainer().Items("env")
	index := func(list []fieldpath.Value, name string) int {
		return slices.IndexFunc(list, func(v fieldpath.Value) bool { return v.Text("name") == name })
	}
	for i, variable := range env {
		// In Kubernetes, the last of equal names wins.
		if variable.Text("name") != landing.OverrideLabels || index(env[i+1:], landing.OverrideLabels) >= 0 {
			continue
		}
		value := variable.Get("value")
		for _, found := range reference.FindAllStringSubmatch(value.Text(), -1) {
			if name := found[1]; name != "" && index(env[:i], name) < 0 && index(env[i+1:], name) >= 0 {
				found := shows(value, edit("move "+name+" above "+landing.OverrideLabels))
				found.More = name + " is below it"
				report(found)
				return
			}
		}
	}
}

// domainsOf returns a label of a domain, and its values on the nodes where the group's pods fit, if no such label has
// one value on all of them. Of labels at several levels, one with one value is enough: the domain may be that of a
// higher level.
func (x *inventory) domainsOf(g rayGroup) (key string, values []string) {
	nodes := g.Workers.Pod.FittingNodes(x.nodesFor(g))
	for _, row := range landing.DomainLabels {
		if _, pinned := g.Workers.Pod.Pinned(row.Key); pinned {
			return "", nil
		}
		all := map[string]bool{}
		for _, node := range nodes {
			if value := node.Labels[row.Key]; value != "" {
				all[value] = true
			}
		}
		switch {
		case len(all) == 1:
			return "", nil
		case len(all) > 1 && key == "":
			key, values = row.Key, slices.Sorted(maps.Keys(all))
		}
	}
	return key, values
}

// sameDomain returns a group before this one that names the same domain, while a label pins both to different ones.
func sameDomain(g rayGroup) string {
	for _, other := range g.Of.Cluster.Groups[:g.Workers.Index] {
		if other.Labels[gpuDomain] != g.Workers.Labels[gpuDomain] {
			continue
		}
		for _, row := range landing.DomainLabels {
			own, pinned := g.Workers.Pod.Pinned(row.Key)
			if theirs, also := other.Pod.Pinned(row.Key); pinned && also && own != theirs {
				return other.Name
			}
		}
	}
	return ""
}
