package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/typo"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const migPrefix = "nvidia.com/mig-"

// gpuNames are checks of what GPU resources are called.
var gpuNames = []Check{
	{
		Code: "mig-name-misspelt", Severity: raydemand.Error,
		Why: "no device plugin announces this name, so the pods wait for ever",
		look: perGPU(func(c gpuAsk, tell func(sight)) {
			if right := misspeltMIG(c.name); right != "" {
				c.tellName(tell, c.rename(right))
			}
		}),
	},
	{
		Code: "mig-profile-unknown", Severity: raydemand.Error,
		Why:  "the card has no such MIG profile, so no node will ever announce it and the pods wait for ever",
		look: perGPU(lookForProfile),
	},
	{
		Code: "mig-two-profiles", Severity: raydemand.Warning,
		Why: "a CUDA process uses one MIG instance, and the operator counts the GPUs of the first name only: the other instance is paid for and idle",
		look: perGroup(func(_ *exam, g group, tell func(sight)) {
			for _, c := range g.containers() {
				var profiles []string
				limits := c.get("resources", "limits")
				for _, name := range limits.keys() {
					if q, ok := limits.get(name).quantity(); ok && q.Sign() > 0 && strings.HasPrefix(name, migPrefix) {
						profiles = append(profiles, name)
					}
				}
				if len(profiles) > 1 {
					ops := []op{remove(limits.get(profiles[1]).at)}
					if request := c.get("resources", "requests", profiles[1]); request.has() {
						ops = append(ops, remove(request.at))
					}
					tell(sight{of: g.of, at: limits.at, seen: strings.Join(profiles, ", "), fix: g.patch(ops...).hint("or give each profile a group of its own")})
				}
			}
		}),
	},
	{
		Code: "mig-strategy", Severity: raydemand.Error,
		Why: "with strategy none or single the device plugin announces instances as nvidia.com/gpu, never under the name of their profile, so the pods " +
			"wait for ever",
		look: func(x *exam, tell func(sight)) {
			for _, g := range x.groups {
				for _, c := range g.asks() {
					x.lookForStrategy(c, tell)
				}
			}
		},
	},
	{
		Code: "gpu-resource-unknown", Severity: raydemand.Warning,
		Why: "the name speaks of GPUs and stands in no table, so nobody knows what a unit of it is",
		look: perGPU(func(c gpuAsk, tell func(sight)) {
			_, err := c.gpuNames.Resource(c.name)
			_, shares := countedShares[c.name]
			if errors.Is(err, gpuinfo.ErrUnknownResource) && misspeltMIG(c.name) == "" && !strings.HasPrefix(c.name, migPrefix) && !shares {
				c.tellName(tell, c.of.edit("mend the name, or tell doctor, nodepools and serve what it is: --resource "+quote(c.name)+"=KIND"))
			}
		}),
	},
}

func (c gpuAsk) tellName(tell func(sight), fix remedy) {
	at := c.limit.at
	if !c.limit.has() {
		at = c.request.at
	}
	tell(sight{of: c.of, at: at, seen: c.name, fix: fix})
}

// rename is the command that gives the resource another name, in limits and requests.
func (c gpuAsk) rename(to string) remedy {
	var ops []op
	for _, v := range []value{c.limit, c.request} {
		if v.has() {
			ops = append(ops, move(v.at, v.at[:len(v.at)-1].then(to)))
		}
	}
	return c.patch(ops...)
}

// misspeltMIG returns what was meant by a MIG name without its hyphen, as an article on AKS spells it, and "" for other names.
func misspeltMIG(name string) string {
	profile, misspelt := strings.CutPrefix(name, "nvidia.com/mig")
	if !misspelt || strings.HasPrefix(profile, "-") {
		return ""
	}
	if _, err := (gpuinfo.Names{}).Resource(migPrefix + profile); err != nil {
		return ""
	}
	return migPrefix + profile
}

// lookForProfile compares a profile with the card that the group selects by feature discovery's label, else with all cards.
func lookForProfile(c gpuAsk, tell func(sight)) {
	suffix, isMIG := strings.CutPrefix(c.name, migPrefix)
	if !isMIG {
		return
	}
	products, whose := gpuinfo.Products(), "no card has it"
	if model := c.template().get("nodeSelector", "nvidia.com/gpu.product").text(); model != "" {
		product, known := gpuinfo.ProductOf(model)
		if !known {
			return
		}
		products, whose = []gpuinfo.Product{product}, product.Name+" does not have it"
	}
	wanted, err := gpuinfo.ParseProfile(strings.TrimSuffix(suffix, ".shared"))
	if err == nil && slices.ContainsFunc(products, func(p gpuinfo.Product) bool { _, has := p.Profile(wanted.String()); return has }) {
		return
	}
	s := sight{of: c.of, at: c.limit.at, seen: c.name, more: whose}
	if nearest, ok := nearestProfile(products, suffix); ok {
		s.fix = c.rename(migPrefix + nearest)
	} else {
		s.fix = c.of.edit("name a profile as nvidia-smi mig -lgip does, for example " + migPrefix + "1g.10gb")
	}
	if !c.limit.has() {
		s.at = c.request.at
	}
	tell(s)
}

// nearestProfile is the plain profile with the most similar spelling, of one with as many compute slices where there is one.
func nearestProfile(products []gpuinfo.Product, suffix string) (string, bool) {
	best, least := "", -1
	for _, product := range products {
		for _, profile := range product.Profiles {
			if !profile.Plain() {
				continue
			}
			far := typo.Distance(suffix, profile.Name)
			if suffix[:min(len(suffix), 1)] != profile.Name[:1] {
				far += 10
			}
			if least < 0 || far < least || far == least && cmp.Less(profile.Name, best) {
				best, least = profile.Name, far
			}
		}
	}
	return best, least >= 0 && least < 10
}

// lookForStrategy tells of a profile that is asked for by name where nodes have MIG cards and announce no profile under its name.
func (x *exam) lookForStrategy(c gpuAsk, tell func(sight)) {
	if !strings.HasPrefix(c.name, migPrefix) {
		return
	}
	guilty, known := x.strategies[c.name]
	if !known {
		guilty = x.otherStrategy(c.name)
		x.strategies[c.name] = guilty
	}
	if guilty == nil {
		return
	}
	seen := fmt.Sprintf("%s, and nvidia.com/mig.strategy=%s on node %s", c.name, guilty.Node.GPUs.Labels["nvidia.com/mig.strategy"], guilty.Name)
	c.tellStrategy(tell, seen)
}

// otherStrategy is the first node whose strategy does not announce the name; nil where another one announces it, or may.
func (x *exam) otherStrategy(name string) (guilty *examNode) {
	for i := range x.nodes {
		n := &x.nodes[i]
		labels := n.Node.GPUs.Labels
		if n.Node.GPUs.Capacity[name] > 0 || n.Node.GPUs.Allocatable[name] > 0 || labels[name+".count"] != "" || labels["nvidia.com/mig.strategy"] == "mixed" {
			return nil
		}
		if strategy := labels["nvidia.com/mig.strategy"]; guilty == nil && (strategy == "none" || strategy == "single") {
			guilty = n
		}
	}
	return guilty
}

func (c gpuAsk) tellStrategy(tell func(sight), seen string) {
	at := c.limit.at
	if !c.limit.has() {
		at = c.request.at
	}
	tell(sight{of: c.of, at: at, seen: seen,
		fix: run(`kubectl patch clusterpolicies.nvidia.com/cluster-policy --type=merge -p '{"spec":{"mig":{"strategy":"mixed"}}}'`).
			hint("with the GPU operator; otherwise set MIG_STRATEGY=mixed on the device plugin, or ask for nvidia.com/gpu")})
}
