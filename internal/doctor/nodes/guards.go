package nodes

import (
	"strings"

	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
)

// guardFix returns the fix for groups that nothing guards: the flag of Heliostat's Deployment, if that is what is
// missing, or else what the caller knows.
func guardFix(x *inventory.Inventory, otherwise fix.Fix) fix.Fix {
	service, found := x.Service()
	if protects, known := service.Protects(); !found || !known || protects {
		return otherwise
	}
	change := fix.Append(service.Object, service.Args, "--"+inventory.ProtectFlag)
	for _, word := range service.Args.Items() {
		if strings.HasPrefix(word.Text(), "--"+inventory.ProtectFlag) {
			change = fix.Replace(word.Path(), "--"+inventory.ProtectFlag)
		}
	}
	const role = "heliostat-guards"
	return fix.Patch(service.Object, change).
		Then("kubectl create clusterrole " + role + " --verb=patch --resource=pods" +
			" && kubectl create clusterrolebinding " + role + " --clusterrole=" + role +
			" --serviceaccount=" + fix.Quote(service.Namespace+":"+service.Account())).
		Hint("the chart value protectBusy: true does both, and it has an effect for managed RayClusters alone")
}
