package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// The bounds of a reply. Whatever exceeds them is nonsense or an attack, not an application.
const (
	// MaxReplicas bounds the replicas of one deployment.
	MaxReplicas = 100_000
	// MaxDeployments bounds the deployments of all applications.
	MaxDeployments = 1_000
	maxBundles     = 1_000 // of one replica, and of one replica of each deployment together
	// maxName bounds the names of applications, deployments and resources, in bytes.
	maxName      = 300
	maxResources = 32
	maxSelectors = 8
)

// acceleratorType is what a replica with an accelerator_type requests of accelerator_type:NAME (ray: _common/utils.py,
// resources_from_ray_options).
const acceleratorType = 0.001

// bounded returns an error if deployments have more or longer parts than any application.
func bounded(all []raydemand.Deployment) error {
	bundles := 0
	for i := range all {
		d := &all[i]
		names := []string{d.App, d.Name}
		for _, b := range d.Bundles {
			names = slices.AppendSeq(names, maps.Keys(b))
		}
		for _, name := range names {
			if len(name) > maxName {
				return fmt.Errorf("%w: the name %q has %d bytes, want at most %d", raydemand.ErrBadReply,
					excerpt([]byte(name)), len(name), maxName)
			}
		}
		bundles += len(d.Bundles)
	}
	if bundles > maxBundles {
		return fmt.Errorf("%w: the replicas of its deployments have %d bundles, want at most %d", raydemand.ErrBadReply,
			bundles, maxBundles)
	}
	return nil
}

// application is what is read of an ApplicationDetails (ray: serve/schema.py). Other fields are ignored.
type application struct {
	Deployments map[string]json.RawMessage `json:"deployments"`
	// Config is null for applications that were deployed by code.
	Config *struct {
		Deployments []override `json:"deployments"`
	} `json:"deployed_app_config"`
}

// override is what is read of an entry of the application's config, as its author wrote it. The deployment_config of
// the reply has no placement groups (ray: serve/schema.py, _deployment_info_to_schema), so they are read here. Those
// that the application's code sets are nowhere in the reply; see AddGroups.
type override struct {
	Name     string               `json:"name"`
	Bundles  []map[string]float64 `json:"placement_group_bundles"`
	Strategy raydemand.Strategy   `json:"placement_group_strategy"`
}

// deployment is what is read of a DeploymentDetails.
type deployment struct {
	Target *json.Number `json:"target_num_replicas"`
	Config struct {
		Options actorOptions `json:"ray_actor_options"`
		// PerNode is how many replicas a node may have; nil means any number. Ray 2.40 does not show it.
		PerNode *float64 `json:"max_replicas_per_node"`
	} `json:"deployment_config"`
}

// actorOptions is what is read of a RayActorOptionsSchema.
type actorOptions struct {
	CPUs            *float64           `json:"num_cpus"`
	GPUs            *float64           `json:"num_gpus"`
	Memory          *float64           `json:"memory"`
	Resources       map[string]float64 `json:"resources"`
	AcceleratorType string             `json:"accelerator_type"`
	LabelSelector   map[string]string  `json:"label_selector"`
	Fallback        []struct {
		LabelSelector map[string]string `json:"label_selector"`
	} `json:"fallback_strategy"`
}

// Decode reads a reply. It ignores what it does not know. The error wraps raydemand.ErrBadReply and names the
// application, the deployment and the field.
func Decode(text []byte) ([]raydemand.Deployment, error) {
	var reply struct {
		Applications map[string]json.RawMessage `json:"applications"`
	}
	text = withoutNonNumbers(text)
	if err := json.Unmarshal(text, &reply); err != nil {
		return nil, fmt.Errorf("%w: want JSON, it begins with %q: %w", raydemand.ErrBadReply, excerpt(text), err)
	}
	if reply.Applications == nil {
		return nil, fmt.Errorf("%w: it has no applications", raydemand.ErrBadReply)
	}
	var all []raydemand.Deployment
	for _, name := range slices.Sorted(maps.Keys(reply.Applications)) {
		deployments, err := decodeApplication(name, reply.Applications[name])
		if err != nil {
			return nil, fmt.Errorf("%w: application %q, %w", raydemand.ErrBadReply, excerpt([]byte(name)), err)
		}
		if all = append(all, deployments...); len(all) > MaxDeployments {
			return nil, fmt.Errorf("%w: it has more than %d deployments", raydemand.ErrBadReply, MaxDeployments)
		}
	}
	return all, nil
}

func decodeApplication(name string, text json.RawMessage) (all []raydemand.Deployment, err error) {
	var app application
	if err := json.Unmarshal(text, &app); err != nil {
		return nil, err
	}
	for _, title := range slices.Sorted(maps.Keys(app.Deployments)) {
		var in deployment
		if err := json.Unmarshal(app.Deployments[title], &in); err != nil {
			return nil, fmt.Errorf("deployment %q: %w", excerpt([]byte(title)), err)
		}
		out := raydemand.Deployment{App: name, Name: title}
		if out.Replicas, err = replicas(in.Target); err != nil {
			return nil, fmt.Errorf("deployment %q: %w", excerpt([]byte(title)), err)
		}
		if out.Bundles, out.Strategy, err = app.bundles(title, &in.Config.Options); err != nil {
			return nil, fmt.Errorf("deployment %q: %w", excerpt([]byte(title)), err)
		}
		if per := in.Config.PerNode; per != nil && *per >= 1 && len(out.Bundles) == 1 && out.Strategy == "" {
			// Serve's replicas then request a resource of which each node has one (ray: serve/_private/
			// deployment_scheduler.py). It does not go together with placement groups.
			out.Bundles[0][raydemand.ImplicitPrefix+name+":"+title] = max(1, raydemand.One/raydemand.Amount(*per))
		}
		if out.Selectors, err = in.Config.Options.selectors(); err != nil {
			return nil, fmt.Errorf("deployment %q: %w", excerpt([]byte(title)), err)
		}
		all = append(all, out)
	}
	return all, nil
}

func replicas(target *json.Number) (int64, error) {
	if target == nil {
		return 0, fmt.Errorf("it has no target_num_replicas")
	}
	n, err := target.Int64()
	if err != nil || n < 0 || n > MaxReplicas {
		return 0, fmt.Errorf("target_num_replicas is %s, want a whole number from 0 to %d",
			excerpt([]byte(target.String())), MaxReplicas)
	}
	return n, nil
}

// bundles returns what one replica requests: the bundles of its placement group, whose first one holds its actor, or
// else the bundle of its actor.
func (a *application) bundles(title string, options *actorOptions) ([]raydemand.Bundle, raydemand.Strategy, error) {
	if a.Config != nil {
		for i := range a.Config.Deployments {
			of := &a.Config.Deployments[i]
			if of.Name != title || len(of.Bundles) == 0 {
				continue
			}
			strategy := cmp.Or(of.Strategy, raydemand.Pack)
			if !strategy.Valid() {
				return nil, "", fmt.Errorf(
					"placement_group_strategy is %q, want PACK, SPREAD, STRICT_PACK or STRICT_SPREAD",
					excerpt([]byte(strategy)))
			}
			bundles, err := grouped(of.Bundles)
			return bundles, strategy, err
		}
	}
	bundle, err := options.bundle()
	if err != nil || bundle.IsZero() {
		return nil, "", err
	}
	return []raydemand.Bundle{bundle}, "", nil
}

func grouped(bundles []map[string]float64) (all []raydemand.Bundle, err error) {
	if len(bundles) > maxBundles {
		return nil, fmt.Errorf("placement_group_bundles has %d bundles, want at most %d", len(bundles), maxBundles)
	}
	for i, amounts := range bundles {
		bundle, err := bundleOf(fmt.Sprintf("placement_group_bundles[%d]", i), amounts)
		if err != nil {
			return nil, err
		}
		if !bundle.IsZero() {
			all = append(all, bundle)
		}
	}
	return all, nil
}

// bundle returns what the actor of a replica requests. Serve gives it one CPU if it says nothing about CPUs.
func (o *actorOptions) bundle() (raydemand.Bundle, error) {
	amounts := maps.Clone(o.Resources)
	if amounts == nil {
		amounts = map[string]float64{}
	}
	amounts[raydemand.CPU] = 1
	for name, amount := range map[string]*float64{raydemand.CPU: o.CPUs, raydemand.GPU: o.GPUs,
		raydemand.Memory: o.Memory} {
		if amount != nil {
			amounts[name] = *amount
		}
	}
	if o.AcceleratorType != "" {
		amounts["accelerator_type:"+o.AcceleratorType] = acceleratorType
	}
	return bundleOf("ray_actor_options", amounts)
}

func bundleOf(field string, amounts map[string]float64) (raydemand.Bundle, error) {
	if len(amounts) > maxResources {
		return nil, fmt.Errorf("%s has %d resources, want at most %d", field, len(amounts), maxResources)
	}
	bundle := raydemand.Bundle{}
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount, err := raydemand.FromFloat(amounts[name])
		if err != nil || amount < 0 || name == "" {
			return nil, fmt.Errorf("%s has %v of %q, want an amount of 0 or more of a resource with a name", field,
				amounts[name], excerpt([]byte(name)))
		}
		if amount > 0 {
			bundle[name] = amount
		}
	}
	return bundle, nil
}

// selectors returns the labels that a replica's node must have, in Ray's order of preference.
func (o *actorOptions) selectors() ([]raydemand.Selector, error) {
	alternatives := []map[string]string{o.LabelSelector}
	for i := range o.Fallback {
		alternatives = append(alternatives, o.Fallback[i].LabelSelector)
	}
	if len(alternatives) > maxSelectors {
		return nil, fmt.Errorf("fallback_strategy has %d entries, want fewer than %d", len(o.Fallback), maxSelectors)
	}
	var all []raydemand.Selector
	for _, labels := range alternatives {
		selector, err := raydemand.ParseSelector(labels)
		if err != nil {
			return nil, fmt.Errorf("label_selector: %w", err)
		}
		if all = append(all, selector); len(selector) == 0 {
			break // every node matches, so no later alternative counts
		}
	}
	if len(all) == 1 && len(all[0]) == 0 {
		return nil, nil
	}
	return all, nil
}

// withoutNonNumbers replaces NaN, Infinity and -Infinity by null: Python's json writes them as they are, for example in
// a user_config or in metrics of the controller, and JSON has no such numbers.
func withoutNonNumbers(text []byte) []byte {
	if !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) {
		return text
	}
	var out strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case quoted && text[i] == '\\' && len(rest) > 1:
			out.Write(rest[:2])
			i++
			continue
		case text[i] == '"':
			quoted = !quoted
		case quoted:
		default:
			if word := nonNumber(rest); word != "" {
				out.WriteString("null")
				i += len(word) - 1
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return []byte(out.String())
}

func nonNumber(text []byte) string {
	for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
		if bytes.HasPrefix(text, []byte(word)) {
			return word
		}
	}
	return ""
}
