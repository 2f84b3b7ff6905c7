package doctor

import (
	"cmp"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// policyUnreadable reports a CapacityPolicy, with the command that writes it to its RayCluster.
func policyUnreadable(_ *inventory, o *Object, report reporter) {
	policy := maps.Clone(o.Root().Get("spec").Members())
	delete(policy, "rayCluster")
	text, err := json.Marshal(policy)
	if err != nil {
		text = []byte("{}")
	}
	of := &Object{Kind: "RayCluster", Namespace: o.Namespace, Name: o.RayCluster}
	report(occurrence{Path: o.Root().Get("spec").Path(),
		Fix: run(kubectl(of, "annotate", quote(capacity.Annotation+"="+string(text))))})
}

// groupUnknown reports what serve reports about entries of the policy.
func groupUnknown(_ *inventory, o *Object, report reporter) {
	if o.Cluster.Policy == nil {
		return
	}
	at := o.Root().Path("metadata", "annotations", capacity.Annotation).String() + ": "
	has := func(group string) bool {
		_, known := o.Cluster.Group(group)
		return known
	}
	for _, f := range o.Cluster.Policy.GroupsUnknown(has) {
		report(occurrence{Field: at + f.Field, Seen: f.Seen, Why: f.Why, Fix: edit(f.Fix)})
	}
}

// warmNodesLeft reports a CapacityBuffer of a Heliostat that, as its Deployment shows, does not ask for nodes any more.
func warmNodesLeft(x *inventory, o *Object, report reporter) {
	only, service := x.program(heliostatImage)
	by := o.Root().Get("metadata", "labels", "app.kubernetes.io/managed-by")
	asked := flagOf(service, "warm-nodes")
	inFile := asked == "" && flagOf(service, "config") != ""
	if on, err := strconv.ParseBool(cmp.Or(asked, "false")); err != nil || on || only == nil || inFile {
		return
	}
	if by.Text() == "heliostat" {
		template := &Object{Kind: "PodTemplate", Namespace: o.Namespace, Name: o.Name}
		report(occurrence{Path: by.Path(), Seen: by.Text(),
			Fix: run(kubectl(o, "delete")).Then(kubectl(template, "delete")).Hint("or serve with --warm-nodes again")})
	}
}

// forbidden reports a kind that the reader may not list, nodes apart from others. The API server's message names the
// account.
func forbidden(nodes bool) func(*inventory, reporter) {
	return func(x *inventory, report reporter) {
		for _, f := range x.Input.Forbidden {
			if nodes != (f.Resource == "nodes") {
				continue
			}
			resource := schema.GroupResource{Group: f.Group, Resource: f.Resource}.String()
			object := &Object{Kind: "Node"}
			if !nodes {
				object = &Object{Kind: resource, Namespace: f.Namespace}
			}
			report(occurrence{Object: object, Seen: f.Message, Fix: run("kubectl create clusterrole heliostat-" +
				f.Resource + " --verb=get,list,watch --resource=" + resource).Hint("and bind it to the account")})
		}
	}
}

func objectUnreadable(x *inventory, report reporter) {
	for i := range x.Input.Objects {
		o := &x.Input.Objects[i]
		severity, why := raydemand.Severity(""), ""
		if o.Kind == "ResourceRequest" {
			severity, why = raydemand.Error, "Heliostat cannot read the request, so it is not served"
		}
		for _, text := range o.Unreadable {
			if strings.HasPrefix(text, "key ") {
				why = "what the others have is lost, without a word from kubectl"
			}
			report(occurrence{Object: o, Seen: text, Severity: severity, Why: why,
				Fix: run(kubectl(o, "get", "-o", "yaml")).Hint("and correct the field that is named here")})
		}
	}
}
