package decode

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about the resources of a container.
const (
	// PodsRefused marks a group whose pods the API server rejects.
	PodsRefused = "pods-refused"
	// BytesFractional: an amount in bytes is not a whole number, such as 512m, which is half a byte.
	BytesFractional = "bytes-fractional"
)

// script returns a container's own command line, joined the way the operator joins it.
func script(c corev1.Container) string {
	return strings.Join(slices.Concat(c.Command, c.Args), " ")
}

// env returns what env of a container says of a variable; nil if it says nothing. The last of equal names wins.
func env(c corev1.Container, name string) *corev1.EnvVar {
	for i := len(c.Env) - 1; i >= 0; i-- {
		if c.Env[i].Name == name {
			return &c.Env[i]
		}
	}
	return nil
}

// envFrom returns the ConfigMap or Secret of envFrom that may set a variable, which Heliostat does not read; empty if
// there is none. In Kubernetes, env overrides envFrom.
func envFrom(c corev1.Container, name string) string {
	for _, source := range c.EnvFrom {
		switch {
		case !strings.HasPrefix(name, source.Prefix):
		case source.SecretRef != nil:
			return "Secret " + source.SecretRef.Name
		case source.ConfigMapRef != nil:
			return "ConfigMap " + source.ConfigMapRef.Name
		}
	}
	return ""
}

// checkContainers checks the resources of all containers of a worker group's or the head's template.
func checkContainers(group Fields, pod *corev1.Pod) {
	spec := group.silent().Object("template").Object("spec")
	fields := slices.Concat(spec.Objects("containers"), spec.Objects("initContainers"))
	for i, c := range containersOf(pod) {
		checkResources(fields[i], c.Resources)
	}
}

// checkResources reports what makes the API server reject the pod: negative amounts, and for resources such as
// nvidia.com/gpu, which require whole numbers and equal requests and limits, any others.
func checkResources(f Fields, c corev1.ResourceRequirements) {
	for _, resourceName := range slices.Sorted(maps.Keys(merged(c.Requests, c.Limits))) {
		name := string(resourceName)
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			f.Report.Add(raydemand.Error, PodsRefused, f.at("resources")+"."+name, name,
				"it is no name of a resource, so the API server rejects every pod of the group: "+problems[0],
				"correct the name")
			continue
		}
		size, huge := strings.CutPrefix(name, "hugepages-") // they follow the rules of extended resources
		if !huge && !extended(name) {
			checkNative(f, name, c)
			continue
		}
		page, err := resource.ParseQuantity(size)
		limit, limited := c.Limits[resourceName]
		request, requested := c.Requests[resourceName]
		why := ""
		switch {
		case !limited:
			why = "it is in requests only, and a limit is required"
		case requested && request.Cmp(limit) != 0:
			why = "its request and its limit differ"
		case limit.MilliValue()%1000 != 0:
			why = "it is not a whole number"
		case limit.Sign() < 0:
			why = "it is negative"
		case huge && err == nil && page.Sign() > 0 && limit.Value()%page.Value() != 0:
			why = "it is not a multiple of the size of a page"
		}
		if why != "" {
			f.Report.Add(raydemand.Error, PodsRefused, f.at("resources", "limits")+"."+name, limit.String(),
				why+", so the API server rejects every pod of the group",
				"set a whole number in limits, and the same or none in requests")
		}
	}
}

// checkNative reports a resource without a domain that containers do not have, such as cpus, a negative amount of a
// native resource, a request above its limit (Kubernetes, ValidateContainerResourceName and
// validateContainerResourceRequirements), and a fraction of a byte.
func checkNative(f Fields, name string, c corev1.ResourceRequirements) {
	limit, limited := c.Limits[corev1.ResourceName(name)]
	if !strings.Contains(name, "/") && !slices.Contains([]string{"cpu", "memory", "ephemeral-storage"}, name) {
		section := "limits"
		if !limited {
			section = "requests"
		}
		f.Report.Add(raydemand.Error, PodsRefused, f.at("resources", section)+"."+name, name,
			"containers have no such resource, so the API server rejects every pod of the group",
			"want cpu, memory, ephemeral-storage, hugepages-SIZE, or a name with a domain such as nvidia.com/gpu")
		return
	}
	for _, section := range []string{"limits", "requests"} {
		list := c.Limits
		if section == "requests" {
			list = c.Requests
		}
		amount, set := list[corev1.ResourceName(name)]
		field := f.at("resources", section) + "." + name
		switch {
		case !set:
		case amount.Sign() < 0:
			f.Report.Add(raydemand.Error, PodsRefused, field, amount.String(),
				"it is negative, so the API server rejects every pod of the group", "set 0 or more")
		case limited && limit.Sign() >= 0 && amount.Cmp(limit) > 0:
			f.Report.Add(raydemand.Error, PodsRefused, field, amount.String(),
				"it is above the limit "+limit.String()+", so the API server rejects every pod of the group",
				"set a request of at most the limit, or a higher limit")
		case name != "cpu" && amount.MilliValue()%1000 != 0:
			// The API server warns and rounds up (Kubernetes 1.36, pkg/api/pod/warnings.go).
			f.Report.Add(raydemand.Warning, BytesFractional, field, amount.String(),
				"m means a thousandth, so it is not a whole number of bytes; Kubernetes rounds it up to "+
					strconv.FormatInt(amount.Value(), 10)+" bytes",
				"set "+strings.TrimSuffix(amount.String(), "m")+"Mi if you mean mebibytes")
		}
	}
}
