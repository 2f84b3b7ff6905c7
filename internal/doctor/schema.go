package doctor

import (
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed" // the schemas
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	openapi "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// schemaFaults are what the schema of a kind says of an object.
type schemaFaults struct {
	faults []occurrence
	// unknown are fields that the schema does not have.
	unknown []fieldpath.Unknown
}

// complete returns a value without null and with its defaults, and notes the fields that the schema does not have.
func (s *schemaFaults) complete(schema *spec.Schema, value any, at fieldpath.Path) any {
	switch v := value.(type) {
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			if list[i] = element; schema.Items != nil && schema.Items.Schema != nil {
				list[i] = s.complete(schema.Items.Schema, element, at.Index(i))
			}
		}
		return list
	case map[string]any:
		members := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inner, known := schema.Properties[key]
			if more := schema.AdditionalProperties; !known && more != nil && more.Schema != nil {
				inner, known = *more.Schema, true
			}
			switch {
			case known && v[key] != nil:
				members[key] = s.complete(&inner, v[key], at.Key(key))
			case !known && schema.AdditionalProperties == nil && len(schema.Properties) > 0 &&
				schema.Extensions["x-kubernetes-preserve-unknown-fields"] != true:
				known := slices.Sorted(maps.Keys(schema.Properties))
				s.unknown = append(s.unknown, fieldpath.Unknown{Path: at.Key(key), Known: known})
			}
		}
		for key, inner := range schema.Properties {
			if members[key] == nil && inner.Default != nil {
				members[key] = inner.Default
			}
		}
		return members
	}
	return value
}

// shown is the beginning of a value.
func shown(value any) string { return fieldpath.Excerpt(fieldpath.Quoted(value), 80) }

// kubeRaySchemas are those of spec in the CustomResourceDefinitions of KubeRay v1.6.2 as JSON, by kind and version,
// such as RayCluster/v1. TestTheSchemasAreThoseOfKubeRay writes them from KubeRay's module.
//
//go:embed kuberay.json.gz
var kubeRaySchemas []byte

var raySchemas = sync.OnceValue(func() map[string]*spec.Schema {
	all := map[string]*spec.Schema{}
	reader, err := gzip.NewReader(bytes.NewReader(kubeRaySchemas))
	if err == nil {
		err = json.NewDecoder(reader).Decode(&all)
	}
	if err != nil {
		panic("the program was built with schemas of KubeRay that cannot be read: " + err.Error())
	}
	return all
})

// bySchema compares the spec of an object of one of Ray's kinds with KubeRay's schema as the API server does, which
// leaves out null and adds defaults first. It finds nothing in other objects.
func (o *Object) bySchema() schemaFaults {
	version := o.APIVersion()[strings.LastIndex(o.APIVersion(), "/")+1:]
	schema := raySchemas()[o.Kind+"/"+version]
	if o.schema != nil || schema == nil || !o.Read() {
		return *cmp.Or(o.schema, &schemaFaults{})
	}
	s, said := schemaFaults{}, map[string]bool{}
	value := s.complete(schema, o.Root().Get("spec").Raw(), fieldpath.NewPath("spec"))
	for _, err := range validate.NewSchemaValidator(schema, nil, "spec", strfmt.Default).Validate(value).Errors {
		fault, ok := errors.AsType[*openapi.Validation](err)
		if !ok || said[fault.Name] {
			continue
		}
		said[fault.Name] = true
		field := bracketed(fault.Name)
		seen := fieldpath.Missing
		if path, ok := fieldpath.Parse(field); ok {
			if v, _ := o.Root().Find(path); v.Has() {
				seen = shown(v.Raw())
			}
		}
		want, _, _ := strings.Cut(strings.TrimPrefix(fault.Error(), fault.Name+" in body "), `: "`)
		s.faults = append(s.faults, occurrence{Field: field, Seen: seen, More: "it " + want, Fix: edit("correct it")})
	}
	o.schema = &s
	return s
}

// violations returns the values that KubeRay's schema does not allow, but for those that decoding reports, and those
// that are there under a name that field-misspelt is about.
func violations(o *Object) []occurrence {
	s := o.bySchema()
	return slices.DeleteFunc(slices.Clone(s.faults), func(fault occurrence) bool {
		if gcs := o.raySpec().Get("gcsFaultToleranceOptions"); gcs.Has("backend") && // KubeRay 1.7 has it
			fault.Field == gcs.Path("redisAddress").String() {
			return true
		}
		misspelt := func(u fieldpath.Unknown) bool {
			return meant(u) != "" && fault.Field == u.Path.Parent().Key(meant(u)).String()
		}
		decoded := func(f raydemand.Finding) bool {
			return f.Field == "spec" && ofOwnField(f) || strings.HasPrefix(fieldIn(o, f.Field)+".", fault.Field+".")
		}
		return slices.ContainsFunc(s.unknown, misspelt) ||
			o.Cluster != nil && slices.ContainsFunc(o.Cluster.Findings, decoded)
	})
}

// otherNames are names of fields that users take from another kind, an older version or Ray's own cluster launcher.
var otherNames = map[string]string{
	"minWorkers": "minReplicas", "maxWorkers": "maxReplicas",
	"min_workers": "minReplicas", "max_workers": "maxReplicas",
	"rayClusterConfig": "rayClusterSpec", "rayClusterSpec": "rayClusterConfig", "serveConfig": "serveConfigV2",
}

// meant returns the known field that the user certainly means, or nothing.
func meant(u fieldpath.Unknown) string {
	if other := otherNames[u.Path.LastKey()]; slices.Contains(u.Known, other) {
		return other
	}
	return fieldpath.Nearest(u.Path.LastKey(), u.Known)
}

func fieldMisspelt(_ *inventory, o *Object, report reporter) {
	for _, u := range o.bySchema().unknown {
		if right := meant(u); right != "" {
			report(occurrence{Path: u.Path, Seen: u.Path.LastKey(), More: "did you mean " + right + "?",
				Fix: edit("rename the field to " + right)})
		}
	}
}

// newerFields are fields of KubeRay 1.7 and later, with what is to be known besides; a field without that is no fault.
var newerFields = map[string]string{
	"command": "", "args": "", "networkPolicy": "", "tlsOptions": "", "historyServerOptions": "", "timeZone": "",
	"backend": "", "storage": "", "ingressOptions": "", "schedulingGroup": "", "suspend": "", // of a RayService

	"priority": "KubeRay 1.7 has it, and refuses it without autoscalerOptions.version: v2 and rayVersion 2.56 or later",

	"scaleGate":              "KubeRay 1.7 does not have it, the release after it does (kuberay #5094)",
	"idleTerminationOptions": "KubeRay 1.7 does not have it (kuberay #5210)",
	"noDriverTimeoutSeconds": "KubeRay 1.7 does not have it, and ends no RayCluster by it (kuberay #4932)",
}

// fieldUnknown reports fields that KubeRay v1.6.2 does not have. The API server has accepted those of its own objects.
func fieldUnknown(x *inventory, o *Object, report reporter) {
	for _, u := range o.bySchema().unknown {
		rule, newer := newerFields[u.Path.LastKey()]
		if newer && rule == "" || meant(u) != "" || x.Input.Stored {
			continue
		}
		found := occurrence{Path: u.Path, Seen: u.Path.LastKey(), More: rule,
			Fix: edit("move or remove the field, or update KubeRay")}
		if !strings.HasSuffix(o.APIVersion(), "/v1") {
			found.Fix = edit("write apiVersion: ray.io/v1, or remove the field")
		}
		report(found)
	}
}

// rayObjects examines the objects of Ray's kinds, also those without the spec of a RayCluster.
var rayObjects = each(func(x *inventory) (all []*Object) {
	for _, kind := range slices.Sorted(maps.Keys(decode.SpecPaths)) {
		all = append(all, x.ByKind[kind]...)
	}
	return all
})
