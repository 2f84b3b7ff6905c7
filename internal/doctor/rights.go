package doctor

import (
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func nodesForbidden(x *inventory, report reporter) {
	for _, f := range x.Input.Forbidden {
		if f.Resource == "nodes" {
			report(occurrence{
				Object: &Object{Kind: "Node"}, Seen: f.Message,
				Fix: run("kubectl create clusterrole heliostat-nodes --verb=get,list,watch --resource=nodes" +
					" && kubectl create clusterrolebinding heliostat-nodes --clusterrole=heliostat-nodes " +
					subject(f.Message)),
			})
		}
	}
}

func listForbidden(x *inventory, report reporter) {
	for _, f := range x.Input.Forbidden {
		if f.Resource == "nodes" {
			continue
		}
		resource, scope := f.Resource, ""
		if f.Group != "" {
			resource += "." + f.Group
		}
		role, binding := "clusterrole", "clusterrolebinding"
		if f.Namespace != "" {
			role, binding, scope = "role", "rolebinding", " -n "+quote(f.Namespace)
		}
		name := "heliostat-" + f.Resource
		report(occurrence{
			Object: &Object{Kind: resource, Namespace: f.Namespace}, Seen: f.Message,
			Fix: run("kubectl create " + role + " " + name + scope + " --verb=get,list --resource=" + resource +
				" && kubectl create " + binding + " " + name + scope + " --" + role + "=" + name + " " +
				subject(f.Message)),
		})
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

// subject returns the flag of kubectl create that names the refused account. The API server's message begins with it:
// User "system:serviceaccount:ns:name" cannot list ….
func subject(message string) string {
	_, rest, _ := strings.Cut(message, `User "`)
	user, _, found := strings.Cut(rest, `"`)
	if !found {
		return "--serviceaccount=heliostat:heliostat" + comment("with the account that doctor runs as")
	}
	if account, is := strings.CutPrefix(user, "system:serviceaccount:"); is {
		return "--serviceaccount=" + quote(account)
	}
	return "--user=" + quote(user)
}
