package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func migNameMisspelt(_ *inventory, r gpuRequest, report reporter) {
	if right := misspeltMIG(r.Resource); right != "" {
		report(ofName(r, rename(r, right)))
	}
}

// migProfileUnknown compares a profile with the card that the group selects by a label, or else with all cards.
func migProfileUnknown(_ *inventory, r gpuRequest, report reporter) {
	suffix, isMIG := strings.CutPrefix(r.Resource, gpuinfo.MIGPrefix)
	if !isMIG {
		return
	}
	products, which := gpuinfo.Products(), "no card has it"
	if product, known := r.Pods.Pod.SelectedProduct(); known {
		products, which = []gpuinfo.Product{product}, product.Name+" does not have it"
	} else if r.Pods.Pod.Selector[sharing.LabelProduct] != "" {
		return // no table has the product
	}
	profile, err := gpuinfo.ParseProfile(strings.TrimSuffix(suffix, ".shared"))
	if err == nil && slices.ContainsFunc(products, func(p gpuinfo.Product) bool {
		_, has := p.Profile(profile.String())
		return has
	}) {
		return
	}
	example := "use a profile that nvidia-smi mig -lgip lists, for example " + gpuinfo.MIGPrefix + "1g.10gb"
	found := ofName(r, edit(r.Of, example))
	if nearest, ok := nearestProfile(products, suffix); ok {
		found.Fix = rename(r, gpuinfo.MIGPrefix+nearest)
	}
	found.More = which
	report(found)
}

func migTwoProfiles(_ *inventory, g rayGroup, report reporter) {
	for _, c := range g.containers() {
		var profiles []string
		limits := c.Get("resources", "limits")
		for _, name := range limits.Keys() {
			q, ok := quantity(limits.Get(name))
			if ok && q.Sign() > 0 && strings.HasPrefix(name, gpuinfo.MIGPrefix) {
				profiles = append(profiles, name)
			}
		}
		if len(profiles) < 2 {
			continue
		}
		operations := []operation{remove(limits.Path(profiles[1]))}
		if request := c.Get("resources", "requests", profiles[1]); request.Has() {
			operations = append(operations, remove(request.Path()))
		}
		report(occurrence{Object: g.Of, Path: limits.Path(), Seen: strings.Join(profiles, ", "),
			Fix: patch(g.Of, operations...).Hint("or give each profile its own group")})
	}
}

// migStrategy examines profiles that are requested by name, if nodes have MIG cards and announce no profile by its
// name.
func migStrategy(x *inventory, report reporter) {
	byName := map[string]*Object{}
	for _, g := range x.Groups {
		for _, r := range g.gpuRequests() {
			if !strings.HasPrefix(r.Resource, gpuinfo.MIGPrefix) {
				continue
			}
			node, known := byName[r.Resource]
			if !known {
				node = otherStrategy(x, r.Resource)
				byName[r.Resource] = node
			}
			if node == nil {
				continue
			}
			strategy := node.Node.GPUs.Labels[strategyLabel]
			report(occurrence{
				Object: r.Of, Path: r.field().Path(),
				Seen: fmt.Sprintf("%s, and %s=%s on node %s", r.Resource, strategyLabel, strategy, node.Name),
				Fix: run(mixedStrategy).Hint("with the GPU operator; " +
					"otherwise set MIG_STRATEGY=mixed on the device plugin, or request nvidia.com/gpu"),
			})
		}
	}
}

const (
	strategyLabel = "nvidia.com/mig.strategy"
	mixedStrategy = "kubectl patch clusterpolicies.nvidia.com/cluster-policy --type=merge " +
		`-p '{"spec":{"mig":{"strategy":"mixed"}}}'`
)

// otherStrategy returns the first node whose strategy does not announce the name, or nil if another node announces it,
// or may.
func otherStrategy(x *inventory, name string) (first *Object) {
	for _, n := range x.Nodes {
		gpus := n.Node.GPUs
		strategy := gpus.Labels[strategyLabel]
		announced := gpus.Capacity[name] > 0 || gpus.Allocatable[name] > 0 || gpus.Labels[name+".count"] != ""
		switch {
		case announced || strategy == "mixed":
			return nil
		case first == nil && (strategy == "none" || strategy == "single"):
			first = n
		}
	}
	return first
}

func gpuResourceUnknown(_ *inventory, r gpuRequest, report reporter) {
	_, err := r.lookup()
	_, shares := countedShares[r.Resource]
	isMIG := misspeltMIG(r.Resource) != "" || strings.HasPrefix(r.Resource, gpuinfo.MIGPrefix)
	if !errors.Is(err, gpuinfo.ErrUnknownResource) || isMIG || shares {
		return
	}
	hint := "correct the name, or declare what it is to doctor, nodepools and serve: --resource "
	found := ofName(r, edit(r.Of, hint+quote(r.Resource)+"=KIND"))
	if vendor, isLabel := labelOfNodes(r.Resource); isLabel {
		found.Severity = raydemand.Error
		found.Why = "it is a label that describes the GPUs of a node, and no resource: no node announces it, so the " +
			"pods stay pending"
		found.Fix = edit(r.Of, "request "+vendor+"/gpu instead, and select nodes by the label in nodeSelector")
	}
	report(found)
}

// ofName reports the name of a requested resource.
func ofName(r gpuRequest, f fix) occurrence {
	return occurrence{Object: r.Of, Path: r.field().Path(), Seen: r.Resource, Fix: f}
}

// rename gives the resource another name, in limits and requests.
func rename(r gpuRequest, to string) fix {
	var operations []operation
	if r.Limit.Has() {
		operations = append(operations, move(r.Limit.Path(), r.Limit.Path().Parent().Key(to)))
	}
	if r.Request.Has() {
		operations = append(operations, move(r.Request.Path(), r.Request.Path().Parent().Key(to)))
	}
	return patch(r.Of, operations...)
}

// misspeltMIG returns what a MIG name without its hyphen means; an article on AKS spells it so. It returns nothing for
// other names.
func misspeltMIG(name string) string {
	profile, misspelt := strings.CutPrefix(name, "nvidia.com/mig")
	if !misspelt || strings.HasPrefix(profile, "-") {
		return ""
	}
	if _, err := (gpuinfo.Names{}).Resource(gpuinfo.MIGPrefix + profile); err != nil {
		return ""
	}
	return gpuinfo.MIGPrefix + profile
}

// nearestProfile returns the plain profile with the most similar name and as many compute slices.
func nearestProfile(products []gpuinfo.Product, suffix string) (string, bool) {
	const otherSlices = 10 // more than any two names differ
	best, least := "", -1
	for _, product := range products {
		for _, profile := range product.Profiles {
			if !profile.Plain() {
				continue
			}
			distance := fieldpath.Distance(suffix, profile.Name)
			if suffix[:min(len(suffix), 1)] != profile.Name[:1] {
				distance += otherSlices
			}
			if least < 0 || distance < least || distance == least && profile.Name < best {
				best, least = profile.Name, distance
			}
		}
	}
	return best, least >= 0 && least < otherSlices
}

// labelOfNodes reports whether the name is that of a label which AMD's node labeller or NVIDIA's feature discovery
// writes, and returns its domain.
func labelOfNodes(name string) (domain string, is bool) {
	domain, label, _ := strings.Cut(name, "/gpu.")
	labels := map[string][]string{
		"amd.com": {"cu-count", "device-id", "driver-version", "family", "product-name", "simd-count", "vram"},
		"nvidia.com": {"compute.major", "compute.minor", "count", "family", "machine", "memory", "mode", "present",
			"product", "replicas", "sharing-strategy"},
	}
	return domain, slices.Contains(labels[domain], label)
}
