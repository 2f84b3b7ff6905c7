package doctor

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// refused reports what an API server refuses in a manifest, or drops, whatever Ray is to do with it. Of each fault,
// More is what would be right. An API server has accepted its own objects.
func refused(faults func(*Object) []occurrence) scope {
	return func(x *inventory, _ string, report reporter) {
		for i := range x.Input.Objects {
			o := &x.Input.Objects[i]
			for _, f := range faults(o) {
				if x.Input.Stored || alreadyReported(o, cmp.Or(f.Field, f.Path.String())) {
					continue
				}
				f.Object, f.More = o, fieldpath.Excerpt(f.More, 400)
				if o.Place != "" {
					f.More += "; the object is in " + o.Place
				}
				report(f)
			}
		}
	}
}

// alreadyReported reports whether object-unreadable is about the same field.
func alreadyReported(o *Object, field string) bool {
	return slices.ContainsFunc(o.Unreadable, func(text string) bool { return strings.HasPrefix(text, field+": ") })
}

// unknownKind reports an object whose kind or API group is Ray's or Heliostat's, if there is no such kind in its
// apiVersion. Other APIs may have kinds of any name.
func unknownKind(o *Object) []occurrence {
	var kinds []string
	for _, k := range Kinds {
		if k.Own && (k.Name == o.Kind || k.Group == o.Group()) {
			kinds = append(kinds, k.Name)
		}
	}
	if o.Read() || len(kinds) == 0 {
		return nil
	}
	if !slices.Contains(kinds, o.Kind) {
		want := fieldpath.WantName(o.Kind, kinds)
		return []occurrence{{Path: fieldpath.NewPath("kind"), Seen: o.Kind, More: "want " + want,
			Fix: edit("write " + want)}}
	}
	found := occurrence{Path: fieldpath.NewPath("apiVersion"), Seen: fieldpath.Missing}
	if version := o.Root().Get("apiVersion"); version.String() != "" {
		found.Seen = version.String()
	}
	known, _ := kindNamed(o.Kind)
	found.More, found.Fix = "want "+strings.Join(known.apiVersions(), " or "), edit("write "+known.apiVersions()[0])
	return []occurrence{found}
}

// Skipped counts the objects of the input that no check examines and that have no fault, by kind. A kind of the same
// name as one that is examined has its API group behind it, as kubectl writes it: Node.longhorn.io.
func Skipped(input Input) map[string]int {
	counts := map[string]int{}
	for i := range input.Objects {
		o := &input.Objects[i]
		if o.Examined() || len(unknownKind(o)) > 0 {
			continue
		}
		name := o.Kind
		if _, known := kindNamed(o.Kind); known && !o.Read() {
			name += "." + o.Group()
		}
		counts[name]++
	}
	return counts
}

// rayClusterMisnamed reports whether the object has its RayCluster in a field that field-misspelt renames. What the
// operator says of an object without one is no second fault.
func rayClusterMisnamed(o *Object) bool {
	return slices.ContainsFunc(o.bySchema().unknown, func(u fieldpath.Unknown) bool {
		return strings.HasPrefix(meant(u), "rayCluster")
	})
}

// ofOwnField reports whether decoding has found which part of the spec the operator refuses.
func ofOwnField(f raydemand.Finding) bool {
	return f.Code == nodepool.SpecRefused && (f.Field != "spec" || f.Seen != "") || f.Code == decode.MinAboveMax
}

// operatorRefuses reports the first reason for which the operator refuses an object, in its own words, unless decoding
// the RayCluster in it has found one with its field.
func operatorRefuses(_ *inventory, o *Object, report reporter) {
	reported := false // by another check
	if c := o.Cluster; c != nil {
		reported = c.Unreadable || slices.ContainsFunc(c.Findings, ofOwnField)
	}
	if reported || !o.Read() || o.Cluster != nil && o.accepted() ||
		len(violations(o)) > 0 || rayClusterMisnamed(o) {
		return
	}
	if err := kube.OperatorVerdict(o.Fields); err != nil && !o.versionRefused(err.Error()) {
		found := occurrence{Path: fieldpath.NewPath("spec"), More: err.Error(), Fix: edit("correct it")}
		if strings.Contains(found.More, " name should ") {
			found.Path, found.Seen = fieldpath.NewPath("metadata", "name"), o.Name
		}
		report(found)
	}
	serve := o.Root().Get("spec", "serveConfigV2")
	if err := yaml.Unmarshal([]byte(serve.Text()), &map[string]any{}); err != nil { // as updateServeDeployment
		report(occurrence{Path: serve.Path(), More: err.Error(), Fix: edit("correct it"),
			Why: "the operator cannot read it as YAML, so it deploys nothing"})
	}
	mode := o.job().Get("submissionMode")
	modes := []string{"K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"}
	if mode.Has() && !slices.Contains(modes, mode.Text()) { // as reconcile of RayJobs
		report(occurrence{Path: mode.Path(), Seen: mode.Text(), Fix: edit("want one of " + strings.Join(modes, ", ")),
			Why: "the operator knows no such mode: it creates the RayCluster, and nothing submits the job"})
	}
	resources := o.job().Get("entrypointResources")
	if text := resources.Text(); text != "" && json.Unmarshal([]byte(text), &map[string]any{}) != nil {
		report(occurrence{Path: resources.Path(), Seen: text, Fix: edit(`write a JSON object: {"name": 1}`),
			Why: "it is no JSON object, so submitting the job fails"})
	}
}

// job returns the spec of a RayJob, also that in a RayCronJob.
func (o *Object) job() fieldpath.Value {
	if o.Kind == "RayCronJob" {
		return o.Root().Get("spec", "jobTemplate")
	}
	return o.Root().Get("spec")
}
