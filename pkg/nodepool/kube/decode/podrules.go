package decode

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The rules are those by which the API server checks a pod (k8s.io/kubernetes/pkg/apis/core/validation) that published
// manifests break. The CRD of RayCluster accepts what breaks them, so the fault shows only when the operator creates a
// pod; of other rules, the finding about the pod that it cannot create has the API server's words. Faults of type
// are reported where the fields are read. Findings bound the length of a field, so they name the path of the rule in
// it, and the rest in their text.

// checkPodRules reports the rules of a worker group's or the head's template for which the API server rejects its pods.
// The operator adds the injected containers.
func checkPodRules(group Fields, injected ...string) {
	spec := group.silent().Object("template").Object("spec")
	checkNames(spec, injected)
	for _, rule := range podTable {
		rule.check(spec)
	}
}

// podRule is what the API server wants of one field of a pod, or of each entry of a list (Kubernetes 1.36,
// pkg/apis/core/validation, ValidatePodSpec). The schema of the CRD has the required fields,
// but for the image.
type podRule struct {
	list, field string
	problems    func(value string) []string
}

var podTable = []podRule{
	{"", "restartPolicy", oneOf("Always", "OnFailure", "Never")},
	{"", "serviceAccountName", validation.IsDNS1123Subdomain},
	{"", "nodeName", validation.IsDNS1123Subdomain},
	{"", "hostname", validation.IsDNS1123Label},
	{"containers", "name", validation.IsDNS1123Label},
	{"containers", "imagePullPolicy", oneOf("Always", "IfNotPresent", "Never")},
	{"containers.env", "name", validation.IsRelaxedEnvVarName},
	{"containers.ports", "name", validation.IsValidPortName},
	{"containers.ports", "protocol", oneOf("TCP", "UDP", "SCTP")},
	{"tolerations", "key", validation.IsQualifiedName},
	{"tolerations", "operator", oneOf("Equal", "Exists", "Lt", "Gt")},
	{"tolerations", "effect", oneOf("NoSchedule", "PreferNoSchedule", "NoExecute")},
	{"volumes", "name", validation.IsDNS1123Label},
	{"imagePullSecrets", "name", validation.IsDNS1123Subdomain},
}

func oneOf(values ...string) func(string) []string {
	return func(value string) []string {
		if slices.Contains(values, value) {
			return nil
		}
		return []string{"is none of " + strings.Join(values, ", ")}
	}
}

// entriesOf returns the entries of a list, such as containers.env; those of init containers follow the same rules.
func entriesOf(spec Fields, list string) []Fields {
	entries := []Fields{spec}
	for i, name := range strings.FieldsFunc(list, func(r rune) bool { return r == '.' }) {
		var below []Fields
		for _, entry := range entries {
			below = append(below, entry.Objects(name)...)
		}
		if i == 0 && name == "containers" {
			below = append(below, spec.Objects("initContainers")...)
		}
		entries = below
	}
	return entries
}

func (rule podRule) check(spec Fields) {
	for _, entry := range entriesOf(spec, rule.list) {
		value := entry.Text(rule.field)
		if problems := rule.problems(value); value != "" && len(problems) > 0 {
			problem, fix := invalid(value, problems)
			refusePod(Fields{entry.Get(rule.field), entry.Report}, rule.field, value, problem, fix)
		}
	}
}

// invalid says what is wrong with a value by what Kubernetes' package validation says of it, which has the rule in
// words and then as a regular expression.
func invalid(value string, problems []string) (problem, fix string) {
	if variable := Unfilled(value); variable != "" {
		return "has a variable that nothing has filled in", FillIn(variable)
	}
	rule, _, _ := strings.Cut(problems[0], " (e.g. ")
	if strings.HasPrefix(rule, "is ") { // of this package
		return rule, "correct it"
	}
	return "is invalid: " + rule, "correct it"
}

// checkImages reports containers without an image, unless no container has one: then the manifest is an excerpt.
func checkImages(spec Fields, groups []nodepool.WorkerGroup) {
	var missing []Fields
	of, some := []int{}, false
	for i, f := range append(spec.Objects("workerGroupSpecs"), spec.Object("headGroupSpec")) {
		template := f.silent().Object("template").Object("spec")
		for _, c := range slices.Concat(template.Objects("initContainers"), template.Objects("containers")) {
			if some = some || c.Text("image") != ""; !c.Has("image") {
				missing, of = append(missing, c), append(of, i)
			}
		}
	}
	for i, c := range missing {
		if !some {
			return
		}
		refuseMember(c, "image", "is missing", "set it")
		if of[i] < len(groups) {
			groups[of[i]].Broken = true
		}
	}
}

// checkNames reports tolerations with a value that Exists does not take, containers of one name, and mounts of volumes
// that neither the pod has nor the operator adds (KubeRay 1.6.2, common/pod.go).
func checkNames(spec Fields, containers []string) {
	for _, key := range slices.Sorted(maps.Keys(spec.Texts("nodeSelector"))) {
		value := spec.Texts("nodeSelector")[key]
		problems := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value))
		if len(problems) > 0 {
			problem, fix := invalid(key+value, problems)
			spec.Report.Add(raydemand.Error, PodsRefused, spec.at("nodeSelector")+"."+key, value,
				"nodeSelector "+problem+refusesPods, fix)
		}
	}
	for _, toleration := range spec.Objects("tolerations") {
		if toleration.Text("operator") == "Exists" && toleration.Text("value") != "" {
			refuseMember(toleration, "value", "must be empty with operator Exists", "remove it")
		}
	}
	volumes := []string{"ray-logs", "shared-mem", "ray-token"}
	for _, volume := range spec.Objects("volumes") {
		volumes = append(volumes, volume.Text("name"))
	}
	for _, c := range slices.Concat(spec.Objects("initContainers"), spec.Objects("containers")) {
		if name := c.Text("name"); slices.Contains(containers, name) && name != "" {
			refuseMember(c, "name", "is that of another container", "rename it")
		}
		containers = append(containers, c.Text("name"))
		for _, mount := range c.Objects("volumeMounts") {
			if !slices.Contains(volumes, mount.Text("name")) {
				refuseMember(mount, "name", "is no volume of the pod", "add the volume")
			}
		}
	}
}

const refusesPods = ", so the API server rejects every pod of the group"

// refusePod reports a fault of a rule: the path of a value in it, the value, what is wrong, and what would be right.
func refusePod(rule Fields, at, seen, problem, fix string) {
	rule.Report.Add(raydemand.Error, PodsRefused, rule.at(), seen,
		strings.TrimPrefix(at, rule.at()+".")+" "+problem+refusesPods, fix)
}

// refuseMember reports a fault of a text.
func refuseMember(f Fields, key, problem, fix string) {
	refusePod(Fields{f.Get(key), f.Report}, key, f.Text(key), problem, fix)
}
