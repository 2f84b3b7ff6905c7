package doctor

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the schemas
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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

// unknownField is a field that the schema does not have beside those that it knows.
type unknownField struct {
	at      fieldpath.Path
	members map[string]any
	known   []string
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
	return slices.DeleteFunc(rayWalk(o).faults, func(fault occurrence) bool {
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
		repair := patch(o, move(u.at, u.at.Parent().Key(right)))
		if u.members[right] != nil {
			repair = patch(o, remove(u.at))
		}
		report(occurrence{Object: o, Path: u.at, Seen: u.at.LastKey(), Fix: repair,
			More: "did you mean " + right + "?"})
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
		found := occurrence{Object: o, Path: u.at, Seen: u.at.LastKey(), More: rule,
			Fix: edit(o, "remove the field, or update KubeRay")}
		if !strings.HasSuffix(o.APIVersion(), "/v1") {
			found.Fix = edit(o, "write apiVersion: ray.io/v1, or remove the field")
		}
		report(found)
	}
}

// rayObjects examines the objects of Ray's kinds, also those without the spec of a RayCluster.
func rayObjects(examine func(*inventory, *Object, reporter)) scope {
	return func(x *inventory, _ string, report reporter) {
		for _, kind := range slices.Sorted(maps.Keys(decode.SpecPaths)) {
			for _, o := range x.ByKind[kind] {
				examine(x, o, report)
			}
		}
	}
}
