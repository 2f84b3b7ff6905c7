package doctor

import (
	"fmt"
	"regexp"
	"strconv"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func gpuUncounted(x *inventory, g rayGroup, report reporter) {
	resources := g.Workers.Resources
	if _, counted := resources[raydemand.GPU]; counted || len(resources) == 0 || g.hasAccelerator() {
		return
	}
	count, names, problem := g.Workers.Devices(x.Input.Reader)
	coresAlone := len(names) == 1 && names[0] == gpuinfo.AliyunCores // another check
	if problem != "" || count <= 0 || coresAlone {
		return
	}
	found := occurrence{Object: g.Of, Path: g.Path("rayStartParams", "num-gpus"),
		Seen: names[0] + ": " + g.rayContainer().Get("resources", "limits", names[0]).String(),
		Fix:  declareGPUs(g, count.String())}
	if share := g.Workers.Pod.Share; share != nil && !g.requestsGPU() {
		found.Seen = names[0] + ": " + share.Value
		found.More = "KAI gives the pod a part of a card, which Ray counts as a GPU once the pod runs"
	}
	report(found)
}

// declareGPUs declares how many GPUs a worker has, in the field that the group uses for such things.
func declareGPUs(g rayGroup, count string) fix {
	at := g.Path("rayStartParams", "num-gpus")
	if len(g.Keys("resources")) > 0 {
		at = g.Path("resources", raydemand.GPU)
	}
	return patch(g.Of, set(g.Of, at, count))
}

// rayAutoscalerDiffers reports what plans report, if Ray's own autoscaler runs.
func rayAutoscalerDiffers(x *inventory, code string, report reporter) {
	for _, g := range x.workers {
		if !g.Of.raysAutoscaler() {
			continue
		}
		for _, f := range g.Of.Cluster.Findings {
			if of, found := groupOf(g.Of, f); f.Code == code && found && of.Workers.Index == g.Workers.Index {
				report(occurrence{Object: g.Of, Field: fieldIn(g.Of, f.Field), Seen: f.Seen, Why: f.Why,
					Fix: declareGPUs(g, g.Workers.Resources[raydemand.GPU].String())})
			}
		}
	}
}

func numGPUsDiffers(x *inventory, g rayGroup, report reporter) {
	declared, at, ok := g.declaredGPUs()
	name, derived := g.wholeGPUs()
	if request, uncounted := requestGPUs(g); uncounted && ok && !x.anyNode && !g.mayHaveGPUs() {
		report(occurrence{Object: g.Of, Path: at, Seen: fmt.Sprintf("%d declared, no limit", declared),
			Fix: patch(g.Of, request).Hint("or remove the number")})
		return
	}
	if ok && name != "" && declared >= 0 && declared != derived {
		report(occurrence{
			Object: g.Of, Path: at, Seen: fmt.Sprintf("%d declared, limit %s: %d", declared, name, derived),
			Fix: patch(g.Of, replace(at, strconv.FormatInt(derived, 10))),
		})
	}
}

// startedWith finds num-gpus in the command that a pod was started with.
var startedWith = regexp.MustCompile(`--num-gpus=(\d+)`)

func numGPUsRunningDiffers(x *inventory, g rayGroup, report reporter) {
	now, known := g.Workers.Resources[raydemand.GPU]
	if !known {
		return
	}
	for _, pod := range x.podsOf(g.Of, g.Name) {
		var container fieldpath.Value
		if all := pod.Root().Items("spec", "containers"); len(all) > 0 {
			container = all[0]
		}
		command, _ := env(container, "KUBERAY_GEN_RAY_START_CMD")
		then := startedWith.FindStringSubmatch(command.Text())
		if then != nil && then[1] != now.String() {
			report(occurrence{
				Object: pod, Field: "spec.containers[0].env.KUBERAY_GEN_RAY_START_CMD",
				Seen: "--num-gpus=" + then[1] + ", and " + now.String() + " in the spec",
				Fix:  run(kubectl(pod, "delete")).Hint("when it is idle; the operator creates a new one"),
			})
		}
	}
}

func headGPU(_ *inventory, g rayGroup, report reporter) {
	for _, r := range g.gpuRequests() {
		if q, ok := quantity(r.Limit); ok && q.Sign() > 0 && r.isDevices() && len(g.Of.Cluster.Groups) > 0 {
			patch := patch(r.Of, removeRequest(r)...)
			report(shows(r.Of, r.Limit, patch.Hint("if no work needs to run on the head")))
			return
		}
	}
	declared, at, ok := g.declaredGPUs()
	if name, _ := g.wholeGPUs(); ok && declared > 0 && name == "" {
		report(occurrence{Object: g.Of, Path: at, Seen: fmt.Sprint(declared), More: "and its pod has none",
			Fix: patch(g.Of, replace(at, "0"))})
	}
}
