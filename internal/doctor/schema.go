package doctor

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the schemas
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/deploy"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/capacity/policytext"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// definition is what is read of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Names    struct{ Kind string }
		Versions []struct {
			Schema struct {
				OpenAPI *spec.Schema `json:"openAPIV3Schema"`
			}
		}
	}
}

// schemas are those of Heliostat's kinds. Each kind has one version.
var schemas = sync.OnceValue(func() map[string]*spec.Schema {
	all := map[string]*spec.Schema{}
	files, err := fs.Glob(deploy.CRDs, "chart/crds/*.yaml")
	for _, file := range files {
		var text []byte
		var crd definition
		if text, err = deploy.CRDs.ReadFile(file); err == nil {
			err = yaml.Unmarshal(text, &crd)
		}
		if err != nil {
			break
		}
		all[crd.Spec.Names.Kind] = crd.Spec.Versions[0].Schema.OpenAPI
	}
	if err != nil {
		panic("the program was built with CustomResourceDefinitions that cannot be read: " + err.Error())
	}
	return all
})

// violations returns what breaks the schema in an object of Heliostat's own kinds. Of the rules over several fields,
// which are expressions, it has the one that lasting examines. It leaves out metadata, and the status, which manifests
// do not have.
func violations(o *Object) []occurrence {
	schema := schemas()[o.Kind]
	if schema == nil || !o.Read() {
		return rayViolations(o)
	}
	w := walk{of: o}
	w.members(schema, o.Fields, fieldpath.Path{}, "metadata", "status")
	if o.Kind == "ResourceRequest" {
		w.lasting(o.Root().Get("spec"))
	}
	return w.faults
}

// lasting examines the rule that a request says in one way how long it lasts.
func (w *walk) lasting(request fieldpath.Value) {
	lease, hold := request.Has("leaseSeconds"), request.Flag("holdUntilDeleted")
	if lease != hold || len(request.Members()) == 0 {
		return
	}
	seen := "neither leaseSeconds nor holdUntilDeleted: true"
	if lease {
		seen = "both leaseSeconds and holdUntilDeleted: true"
	}
	w.report(request.Path(), seen, "one of leaseSeconds and holdUntilDeleted: true", schemaRefuses)
}

type walk struct {
	of     *Object
	faults []occurrence
	// unknowns are fields that the schema of one of Ray's kinds does not have; in other kinds they are faults.
	isRays   bool
	unknowns []unknownField
	above    []level // the objects that lead to a value, with it
}

// level is an object on the way to a value.
type level struct {
	schema  *spec.Schema
	members map[string]any
	at      fieldpath.Path
}

// place is where a field belongs, its schema there, and whether something is there already.
type place struct {
	at     fieldpath.Path
	schema spec.Schema
	taken  bool
}

// inner returns the object under a key.
func (l level) inner(key string) level {
	schema := l.schema.Properties[key]
	members, _ := l.members[key].(map[string]any)
	return level{&schema, members, l.at.Key(key)}
}

// place returns the place of a field in the object, if it has one.
func (l level) place(key string) (place, bool) {
	schema, known := l.schema.Properties[key]
	return place{l.at.Key(key), schema, l.members[key] != nil}, known
}

// below are the objects in which users who write a field too far up mean it to be: that of a RayCluster in a RayJob or
// a RayService, and those of the pods in a group and in its template.
var below = [][]string{{"rayClusterSpec"}, {"rayClusterConfig"}, {"spec"}, {"template", "spec"}}

// place returns where a field of the innermost object belongs if it is in the wrong one, or nothing: in one of those
// below, or in the nearest one above that knows it. Labels and annotations are of pods. Resources are of a container,
// of a pod or, with other names, of a group.
func (w *walk) place(key string) place {
	if key == "resources" {
		return place{}
	}
	ways, own := below, w.above[len(w.above)-1]
	ofPods := key == "labels" || key == "annotations"
	if ofPods {
		ways = [][]string{{"metadata"}, {"template", "metadata"}}
	}
	for _, way := range ways {
		l := own
		for _, name := range way {
			l = l.inner(name)
		}
		if found, known := l.place(key); known {
			return found
		}
	}
	for _, l := range slices.Backward(w.above) {
		if found, known := l.place(key); known && !ofPods {
			return found
		}
	}
	return place{}
}

const schemaRefuses = "the schema does not allow it, so the API server refuses the object"

func (w *walk) report(at fieldpath.Path, seen, want, why string) {
	w.faults = append(w.faults, occurrence{Path: at, Seen: seen, More: want, Why: why, Fix: edit("write " + want)})
}

// unknown reports a member that the schema does not have.
func (w *walk) unknown(at fieldpath.Path, seen string, known []string) {
	fault := occurrence{Path: at, Seen: seen, More: fieldpath.WantName(at.LastKey(), known),
		Fix: edit("remove the field"),
		Why: "the schema has no such field: kubectl refuses the object, and the API server drops the field"}
	if slices.Contains(known, fault.More) {
		fault.Fix = edit("rename the field to " + fault.More + ", or remove it")
	}
	removed := policytext.RemovedFields[strings.TrimPrefix(at.String(), "spec.")]
	if removed != "" && w.of.Kind == "CapacityPolicy" {
		fault.Why = "the field was removed; " + removed +
			"; kubectl refuses the object, and the API server drops the field"
	}
	w.faults = append(w.faults, fault)
}

// value examines a value and what is below it. The API server treats null as absent where it does not refuse it.
func (w *walk) value(schema *spec.Schema, value any, at fieldpath.Path) {
	if value == nil {
		return
	}
	if !allows(schema, value) {
		w.report(at, shown(value), want(schema), schemaRefuses)
		return
	}
	switch v := value.(type) {
	case map[string]any:
		w.above = append(w.above, level{schema, v, at})
		w.members(schema, v, at)
		w.above = w.above[:len(w.above)-1]
	case []any:
		for i, element := range v {
			if schema.Items != nil && schema.Items.Schema != nil {
				w.value(schema.Items.Schema, element, at.Index(i))
			}
		}
	}
}

// allows reports whether a schema allows a value, whatever is below it.
func allows(schema *spec.Schema, value any) bool {
	own := *schema
	own.Properties, own.AdditionalProperties, own.Items, own.Required = nil, nil, nil, nil
	return validate.NewSchemaValidator(&own, nil, "", strfmt.Default).Validate(value).IsValid()
}

// members examines the members of an object, but for those to leave out.
func (w *walk) members(schema *spec.Schema, members map[string]any, at fieldpath.Path, leaveOut ...string) {
	names := slices.Sorted(maps.Keys(schema.Properties))
	for _, key := range slices.Sorted(maps.Keys(members)) {
		member, known := schema.Properties[key]
		switch more := schema.AdditionalProperties; {
		case slices.Contains(leaveOut, key):
		case known:
			w.value(&member, members[key], at.Key(key))
		case more != nil && more.Schema != nil:
			w.value(more.Schema, members[key], at.Key(key))
		case more != nil || len(names) == 0 || schema.Extensions["x-kubernetes-preserve-unknown-fields"] == true:
		case w.isRays:
			w.unknowns = append(w.unknowns, unknownField{at.Key(key), members, names, schema.Properties,
				w.place(key)})
		default:
			w.unknown(at.Key(key), shown(members[key]), names)
		}
	}
	for _, key := range schema.Required {
		if member := schema.Properties[key]; members[key] == nil && member.Default == nil {
			w.report(at.Key(key), fieldpath.Missing, want(&member), "the field is required, so the API server refuses "+
				"the object")
		}
	}
}

// want says in words what a schema allows.
func want(schema *spec.Schema) string {
	is := func(kind string) bool { return schema.Type.Contains(kind) }
	switch {
	case len(schema.Enum) > 0:
		return "one of " + list(schema.Enum)
	case is("integer"):
		return "a whole number" + between(schema.Minimum, schema.Maximum, "")
	case is("number"):
		return "a number" + between(schema.Minimum, schema.Maximum, "")
	case is("boolean"):
		return "true or false"
	case is("array"):
		return "a list" + between(schema.MinItems, schema.MaxItems, " elements")
	case is("object"):
		return "an object" + between(schema.MinProperties, schema.MaxProperties, " members")
	case schema.Format == "date-time":
		return "a time such as 2026-01-31T08:00:00Z"
	}
	text := "a text" + between(schema.MinLength, schema.MaxLength, " characters")
	if schema.Pattern != "" {
		text += " that matches " + schema.Pattern
	}
	return text
}

func list(values []any) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprint(value)
	}
	return strings.Join(texts, ", ")
}

// between says from which to which number a value is, or how many of what it has.
func between[N int64 | float64](least, most *N, what string) string {
	number := func(n *N) string { return strconv.FormatFloat(float64(*n), 'f', -1, 64) + what }
	switch {
	case least != nil && most != nil && what == "":
		return " from " + number(least) + " to " + number(most)
	case least != nil && most != nil:
		return fmt.Sprintf(" of %v to %s", *least, number(most))
	case least != nil && what == "":
		return " of " + number(least) + " or more"
	case least != nil:
		return " of at least " + number(least)
	case most != nil:
		return " of at most " + number(most)
	}
	return ""
}

// shown is the beginning of a value in JSON, so that a text has its quotes.
func shown(value any) string {
	const most = 80
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%T", value)
	}
	return fieldpath.Excerpt(string(text), most)
}

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

// unknownField is a field that the schema does not have beside those that it knows, and the place where it does.
type unknownField struct {
	at      fieldpath.Path
	members map[string]any
	known   []string
	schemas map[string]spec.Schema
	place   place
}

// rayWalk compares an object of one of Ray's kinds with KubeRay's schema. It finds nothing in other objects.
func rayWalk(o *Object) walk {
	w := walk{of: o, isRays: true}
	version := o.APIVersion()[strings.LastIndex(o.APIVersion(), "/")+1:]
	if schema := raySchemas()[o.Kind+"/"+version]; schema != nil && o.Read() {
		w.value(schema, o.Root().Get("spec").Raw(), fieldpath.NewPath("spec"))
	}
	return w
}

// rayViolations returns the values that KubeRay's schema does not allow, but for those that decoding reports.
func rayViolations(o *Object) []occurrence {
	w := rayWalk(o)
	return slices.DeleteFunc(w.faults, func(fault occurrence) bool {
		if slices.ContainsFunc(w.unknowns, func(u unknownField) bool { // field-misspelt is about it
			return u.meant() != "" && fault.Path.String() == u.at.Parent().Key(u.meant()).String()
		}) {
			return true
		}
		if gcs := o.raySpec().Get("gcsFaultToleranceOptions"); gcs.Has("backend") && // KubeRay 1.7 has it
			fault.Path.String() == gcs.Path("redisAddress").String() {
			return true
		}
		return o.Cluster != nil && slices.ContainsFunc(o.Cluster.Findings, func(f raydemand.Finding) bool {
			return f.Field == "spec" || strings.HasPrefix(fieldIn(o, f.Field)+".", fault.Path.String()+".")
		})
	})
}

// otherNames are names of fields that users take from another kind, an older version or Ray's own cluster launcher.
var otherNames = map[string]string{
	"minWorkers": "minReplicas", "maxWorkers": "maxReplicas",
	"min_workers": "minReplicas", "max_workers": "maxReplicas",
	"rayClusterConfig": "rayClusterSpec", "rayClusterSpec": "rayClusterConfig", "serveConfig": "serveConfigV2",
}

// meant returns the known field that the user certainly means, or nothing.
func (u unknownField) meant() string {
	if other := otherNames[u.at.LastKey()]; slices.Contains(u.known, other) {
		return other
	}
	return fieldpath.Slip(u.at.LastKey(), u.known)
}

func fieldMisspelt(_ *inventory, o *Object, report reporter) {
	for _, u := range rayWalk(o).unknowns {
		right := u.meant()
		if right == "" {
			continue
		}
		repair := patch(move(u.at, u.at.Parent().Key(right)))
		schema := u.schemas[right]
		switch value := u.members[u.at.LastKey()]; {
		case u.members[right] != nil:
			repair = patch(remove(u.at))
		case value != nil && !allows(&schema, value):
			repair = edit("rename the field to " + right + ", and write " + want(&schema))
			if right == "serveConfigV2" {
				repair = repair.Hint("with applications, as `serve build` prints it")
			}
		}
		report(occurrence{Path: u.at, Seen: u.at.LastKey(), Fix: repair, More: "did you mean " + right + "?"})
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
	for _, u := range rayWalk(o).unknowns {
		rule, newer := newerFields[u.at.LastKey()]
		if newer && rule == "" || u.meant() != "" || x.Input.Stored {
			continue
		}
		found := occurrence{Path: u.at, Seen: u.at.LastKey(), More: rule,
			Fix: edit("remove the field, or update KubeRay")}
		if !strings.HasSuffix(o.APIVersion(), "/v1") {
			found.Fix = edit("write apiVersion: ray.io/v1, or remove the field")
		}
		if right := u.place.at; !newer && right != (fieldpath.Path{}) {
			found.More = "it belongs to " + right.Parent().String()
			switch value := u.members[u.at.LastKey()]; {
			case u.place.taken:
				found.Fix = edit("keep the right value there, and remove this field")
			case value == nil || !allows(&u.place.schema, value):
				found.Fix = edit("move the field there, and write " + want(&u.place.schema))
			default:
				found.Fix = patch(o.set(right, value), remove(u.at))
			}
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
