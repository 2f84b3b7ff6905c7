package doctor

import (
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// What a RayJob or a RayService asks of its own RayCluster, for its entrypoint and its deployments.

// need is what one node of Ray has to have.
type need struct {
	at     fieldpath.Path
	of     string
	bundle raydemand.Bundle
}

func demandFitsNoGroup(_ *inventory, o *Object, report reporter) {
	guesses := []string{decode.StartCommandUnknown, decode.RayStartFails, decode.EnvironmentUnknown}
	guessed := func(f raydemand.Finding) bool { return slices.Contains(guesses, f.Code) }
	if o.Cluster == nil || slices.ContainsFunc(o.Cluster.Findings, guessed) {
		return
	}
	groups := o.groups()
	for _, n := range append(entrypointNeeds(o), serveNeeds(o)...) {
		if n.bundle.IsZero() || slices.ContainsFunc(groups, func(g rayGroup) bool { return g.mayHold(n.bundle) }) {
			continue
		}
		report(occurrence{Path: n.at, Seen: n.of + " " + n.bundle.String(),
			Fix: edit("ask for less, or add a group whose pods have that")})
	}
}

// mayHold reports whether a node of the group may have the amounts. Where nothing sets one, Ray detects it.
func (g rayGroup) mayHold(want raydemand.Bundle) bool {
	has := g.Pods.Resources
	if g.Pods.Broken || len(has) == 0 {
		return true
	}
	for name, amount := range want {
		if raydemand.AddedByRay(name) {
			continue
		}
		_, set := has[name]
		detected := name == raydemand.CPU || name == raydemand.Memory || name == raydemand.GPU && g.mayHaveGPUs()
		for limit := range g.Pods.GPUs.Limits { // of a device, whether the operator passes it on or not
			accelerator, is := gpuinfo.AcceleratorOf(limit)
			detected = detected || is && accelerator.Ray == name
		}
		if (set || !detected) && has.Has(name) < amount {
			return false
		}
	}
	return true
}

// entrypointNeeds returns what the entrypoint of a RayJob asks for (KubeRay 1.6.2, RayJobSpec).
func entrypointNeeds(o *Object) []need {
	job := o.job()
	n := need{of: "the entrypoint", bundle: raydemand.Bundle{}}
	for _, field := range []string{"entrypointNumCpus", "entrypointResources", "entrypointNumGpus"} {
		if job.Has(field) {
			n.at = job.Path(field)
		}
	}
	custom := map[string]any{}
	_ = json.Unmarshal([]byte(job.Text("entrypointResources")), &custom) // Ray refuses other text
	for name, value := range custom {
		n.add(name, value)
	}
	for field, name := range map[string]string{"entrypointNumCpus": raydemand.CPU, "entrypointNumGpus": raydemand.GPU} {
		if v := job.Get(field); v.Has() {
			n.add(name, v.Raw())
		}
	}
	return []need{n}
}

// serveNeeds returns what the replicas of the deployments in serveConfigV2 ask for: a bundle of their placement group,
// or the whole of it with STRICT_PACK, or the options of the actor (Ray 2.60, serve/schema.py, DeploymentSchema).
func serveNeeds(o *Object) (all []need) {
	field := o.Root().Get("spec", "serveConfigV2")
	type deployment struct {
		Name    string
		Options map[string]any   `json:"ray_actor_options"`
		Bundles []map[string]any `json:"placement_group_bundles"`
		Packing string           `json:"placement_group_strategy"`
	}
	var config struct {
		Applications []struct {
			Deployments []deployment
			Args        json.RawMessage
		}
	}
	if yaml.Unmarshal([]byte(field.Text()), &config) != nil {
		return nil // Serve refuses it
	}
	for _, application := range config.Applications {
		var llm struct { // arguments of ray.serve.llm:build_openai_app (Ray 2.60, LLMConfig)
			Configs []struct {
				Model struct {
					ID string `json:"model_id"`
				} `json:"model_loading_config"`
				Group struct {
					Bundles  []map[string]any
					Strategy string
				} `json:"placement_group_config"`
			} `json:"llm_configs"`
		}
		_ = json.Unmarshal(application.Args, &llm) // other applications have other arguments
		for _, c := range llm.Configs {
			application.Deployments = append(application.Deployments,
				deployment{Name: c.Model.ID, Bundles: c.Group.Bundles, Packing: c.Group.Strategy})
		}
		for _, d := range application.Deployments {
			of := "a replica of " + d.Name
			actor := need{field.Path(), of, raydemand.Bundle{}}
			custom, _ := d.Options["resources"].(map[string]any)
			for name, value := range custom {
				actor.add(name, value)
			}
			actor.add(raydemand.CPU, d.Options["num_cpus"])
			actor.add(raydemand.GPU, d.Options["num_gpus"])
			actor.add(raydemand.Memory, d.Options["memory"])
			if len(d.Bundles) == 0 {
				all = append(all, actor)
			}
			whole := need{field.Path(), of, raydemand.Bundle{}}
			for _, bundle := range d.Bundles {
				one := need{field.Path(), "a bundle of " + d.Name, raydemand.Bundle{}}
				for name, value := range bundle {
					one.add(name, value)
				}
				whole.bundle.Add(one.bundle)
				if d.Packing != "STRICT_PACK" {
					all = append(all, one)
				}
			}
			if d.Packing == "STRICT_PACK" {
				all = append(all, whole)
			}
		}
	}
	return all
}

// add adds an amount, unless it is none.
func (n *need) add(name string, value any) {
	if amount, err := raydemand.ParseAmount(fmt.Sprint(value)); err == nil && amount > 0 {
		n.bundle[name] = amount
	}
}
