package doctor

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/version"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// replicasOutside leaves numbers that the operator cannot decode to field-out-of-range.
func replicasOutside(_ *inventory, g rayGroup, report reporter) {
	replicas, there := g.Whole("replicas")
	least, most := int64(g.Workers.Min), int64(g.Workers.Max)
	if !there || replicas != int64(int32(replicas)) ||
		least < 0 || least > most || replicas >= least && replicas <= most {
		return
	}
	report(occurrence{Path: g.Path("replicas"),
		Seen: fmt.Sprintf("replicas %d, minReplicas %d, maxReplicas %d", replicas, least, most),
		Fix:  set(g.Path("replicas"), min(most, max(least, replicas)))})
}

func gpuGroupUnbounded(_ *inventory, g rayGroup, report reporter) {
	scales := g.Of.raySpec().Get("enableInTreeAutoscaling").Flag() || !heldByKueue(g.Of)
	if scales && !g.Has("maxReplicas") && g.requestsGPU() {
		at := g.Path("maxReplicas")
		report(occurrence{Path: at, Fix: set(at, max(g.Workers.Min, g.Workers.Replicas, 1)).
			Hint("set it to as many workers as the group may have")})
	}
}

func idleTimeoutRefused(_ *inventory, g rayGroup, report reporter) {
	v := g.Get("idleTimeoutSeconds")
	if v.Has() && !g.Of.usesAutoscalerV2() && !g.Of.accepted() {
		version := g.Of.raySpec().Path("autoscalerOptions", "version")
		report(shows(v, set(version, "v2")))
	}
}

func restartPolicy(_ *inventory, g rayGroup, report reporter) {
	v := g.template().Get("restartPolicy")
	inField := g.Of.raySpec().Text("autoscalerOptions", "version") == "v2"
	if g.Of.usesAutoscalerV2() && v.Has() && v.Text() != "Never" && !g.Of.accepted() &&
		(g.Of.Cluster.InTreeAutoscaling || inField) {
		found := shows(v, set(v.Path(), "Never"))
		found.More = "the first release after 1.7.0 allows it with rayVersion 2.56 or later (kuberay #4816)"
		report(found)
	}
}

// rayTag finds the versions of Ray and Python in the tag of an image of Ray's, as rayproject/ray:2.9.3-py311-gpu.
var rayTag = regexp.MustCompile(`(?:^|/)ray(?:-ml|-llm)?:(\d+\.\d+\.\d+)(?:\.\w+)?(?:-(py\d+))?`)

// rayImage finds the version of Ray in the tag of an image of Ray's, as far as its age needs it.
var rayImage = regexp.MustCompile(`(?:^|/)ray(?:-ml|-llm)?:(\d+\.\d+)\b`)

// rayVersionOld examines what the head runs, which decides: its image, or rayVersion if the image has another name. Ray
// 2.40 is the oldest with which Heliostat was tested (docs/versions.md).
func rayVersionOld(_ *inventory, g rayGroup, report reporter) {
	said := g.rayContainer().Get("image")
	text := ""
	if tag := rayImage.FindStringSubmatch(said.Text()); tag != nil {
		text = tag[1]
	} else {
		said = g.Of.raySpec().Get("rayVersion")
		text = said.Text()
	}
	if runs, err := version.ParseGeneric(text); err != nil || runs.AtLeast(version.MustParseGeneric("2.40")) {
		return
	}
	severity := raydemand.Severity("")
	if g.Of.Mode() == nodepool.Managed {
		severity = raydemand.Error
	}
	report(occurrence{Path: said.Path(), Seen: said.Text(), Severity: severity,
		Fix: edit("use the images of Ray 2.40 or later in all groups, and its rayVersion")})
}

// rayVersionDiffers compares the image of a group with the head's (Ray 2.60, _private/node.py, check_version_info).
func rayVersionDiffers(_ *inventory, g rayGroup, report reporter) {
	heads := g.Of.raySpec().Items("headGroupSpec", "template", "spec", "containers")
	if len(heads) == 0 {
		return
	}
	image, head := g.rayContainer().Get("image"), heads[0].Text("image")
	own, its := rayTag.FindStringSubmatch(image.Text()), rayTag.FindStringSubmatch(head)
	for i := 1; i < min(len(own), len(its)); i++ {
		if own[i] != "" && its[i] != "" && own[i] != its[i] {
			report(occurrence{Path: image.Path(), Seen: image.Text() + ", the head has " + head,
				Fix: edit("use images of one version in all groups")})
			return
		}
	}
}
