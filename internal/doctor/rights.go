package doctor

import (
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// rights are checks of what the reader may see.
var rights = []Check{
	{
		Code: "nodes-forbidden", Severity: raydemand.Warning,
		Why: "without nodes nobody sees what GPUs there are, whether a group could land anywhere, or that a worker's node is lost",
		look: func(x *exam, tell func(sight)) {
			for _, f := range x.input.Forbidden {
				if f.Resource == "nodes" {
					tell(sight{of: &Object{Kind: "Node"}, seen: f.Message, fix: run("kubectl create clusterrole heliostat-nodes --verb=get,list,watch --resource=nodes" +
						" && kubectl create clusterrolebinding heliostat-nodes --clusterrole=heliostat-nodes " + subject(f.Message))})
				}
			}
		},
	},
	{
		Code: "list-forbidden", Severity: raydemand.Info,
		Why: "what needs these objects was not looked at",
		look: func(x *exam, tell func(sight)) {
			for _, f := range x.input.Forbidden {
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
				tell(sight{of: &Object{Kind: resource, Namespace: f.Namespace}, seen: f.Message,
					fix: run("kubectl create " + role + " " + name + scope + " --verb=get,list --resource=" + resource +
						" && kubectl create " + binding + " " + name + scope + " --" + role + "=" + name + " " + subject(f.Message))})
			}
		},
	},
}

// subject names who was refused, as the API server says it (User "system:serviceaccount:ns:name" cannot list …), as flags of kubectl create.
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
