package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/check"
	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/gpuname"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func migNameMisspelt(_ *inventory.Inventory, r inventory.GPURequest, report check.Reporter) {
	if right := gpuname.MisspeltMIG(r.Resource); right != "" {
		report(ofName(r, rename(r, right)))
	}
}

// migProfileUnknown compares a profile with the card that the group selects by a label, or else with all cards.
func migProfileUnknown(_ *inventory.Inventory, r inventory.GPURequest, report check.Reporter) {
	suffix, isMIG := strings.CutPrefix(r.Resource, gpuname.MIGPrefix)
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
	example := "use a profile that nvidia-smi mig -lgip lists, for example " + gpuname.MIGPrefix + "1g.10gb"
	found := ofName(r, fix.Edit(r.Of, example))
	if nearest, ok := gpuname.NearestProfile(products, suffix); ok {
		found.Fix = rename(r, gpuname.MIGPrefix+nearest)
	}
	found.More = which
	report(found)
}

func migTwoProfiles(_ *inventory.Inventory, g inventory.Group, report check.Reporter) {
	for _, c := range g.Containers() {
		var profiles []string
		limits := c.Get("resources", "limits")
		for _, name := range limits.Keys() {
			q, ok := inventory.Quantity(limits.Get(name))
			if ok && q.Sign() > 0 && strings.HasPrefix(name, gpuname.MIGPrefix) {
				profiles = append(profiles, name)
			}
		}
		if len(profiles) < 2 {
			continue
		}
		operations := []fix.Operation{fix.Remove(limits.Path(profiles[1]))}
		if request := c.Get("resources", "requests", profiles[1]); request.Has() {
			operations = append(operations, fix.Remove(request.Path()))
		}
		report(check.Occurrence{Object: g.Of, Path: limits.Path(), Seen: strings.Join(profiles, ", "),
			Fix: fix.Patch(g.Of, operations...).Hint("or give each profile its own group")})
	}
}

// migStrategy examines profiles that are requested by name, if nodes have MIG cards and announce no profile by its
// name.
func migStrategy(x *inventory.Inventory, report check.Reporter) {
	byName := map[string]*inventory.Node{}
	for _, g := range x.Groups {
		for _, r := range g.GPURequests() {
			if !strings.HasPrefix(r.Resource, gpuname.MIGPrefix) {
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
			report(check.Occurrence{
				Object: r.Of, Path: r.Field().Path(),
				Seen: fmt.Sprintf("%s, and %s=%s on node %s", r.Resource, strategyLabel, strategy, node.Name),
				Fix: fix.Run(mixedStrategy).Hint("with the GPU operator; " +
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
func otherStrategy(x *inventory.Inventory, name string) (first *inventory.Node) {
	for i := range x.Nodes {
		gpus := x.Nodes[i].Node.GPUs
		strategy := gpus.Labels[strategyLabel]
		announced := gpus.Capacity[name] > 0 || gpus.Allocatable[name] > 0 || gpus.Labels[name+".count"] != ""
		switch {
		case announced || strategy == "mixed":
			return nil
		case first == nil && (strategy == "none" || strategy == "single"):
			first = &x.Nodes[i]
		}
	}
	return first
}

func gpuResourceUnknown(_ *inventory.Inventory, r inventory.GPURequest, report check.Reporter) {
	_, err := r.Lookup()
	_, shares := countedShares[r.Resource]
	isMIG := gpuname.MisspeltMIG(r.Resource) != "" || strings.HasPrefix(r.Resource, gpuname.MIGPrefix)
	if !errors.Is(err, gpuinfo.ErrUnknownResource) || isMIG || shares {
		return
	}
	hint := "correct the name, or declare what it is to doctor, nodepools and serve: --resource "
	found := ofName(r, fix.Edit(r.Of, hint+fix.Quote(r.Resource)+"=KIND"))
	if vendor, isLabel := gpuname.LabelOfNodes(r.Resource); isLabel {
		found.Severity = raydemand.Error
		found.Why = "it is a label that describes the GPUs of a node, and no resource: no node announces it, so the " +
			"pods stay pending"
		found.Fix = fix.Edit(r.Of, "request "+vendor+"/gpu instead, and select nodes by the label in nodeSelector")
	}
	report(found)
}

// ofName reports the name of a requested resource.
func ofName(r inventory.GPURequest, f fix.Fix) check.Occurrence {
	return check.Occurrence{Object: r.Of, Path: r.Field().Path(), Seen: r.Resource, Fix: f}
}

// rename gives the resource another name, in limits and requests.
func rename(r inventory.GPURequest, to string) fix.Fix {
	var operations []fix.Operation
	if r.Limit.Has() {
		operations = append(operations, fix.Move(r.Limit.Path(), r.Limit.Path().Parent().Key(to)))
	}
	if r.Request.Has() {
		operations = append(operations, fix.Move(r.Request.Path(), r.Request.Path().Parent().Key(to)))
	}
	return fix.Patch(r.Of, operations...)
}
