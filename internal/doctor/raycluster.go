package doctor

import (
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Annotations of a RayCluster.
const (
	annotationPrefix = "heliostat.dev/"
	modeAnnotation   = annotationPrefix + "mode"
	syncAnnotation   = annotationPrefix + "num-gpus-sync"
)

// raySpec returns the spec of the RayCluster in the object.
func (o *Object) raySpec() fieldpath.Value { return o.Root().Get(o.Spec...) }

// modeField returns the annotation that says whether Heliostat manages the RayCluster, and Mode its value.
func (o *Object) modeField() fieldpath.Value {
	return o.Root().Get("metadata", "annotations", modeAnnotation)
}

// Mode returns the mode that the RayCluster itself asks for.
func (o *Object) Mode() nodepool.Mode { return nodepool.Mode(o.modeField().Text()) }

// raysAutoscaler reports whether Ray's own autoscaler runs beside the head.
func (o *Object) raysAutoscaler() bool {
	return o.Cluster.InTreeAutoscaling &&
		!strings.Contains(o.raySpec().Text("autoscalerOptions", "image"), heliostatImage)
}

// usesAutoscalerV2 reports whether the RayCluster asks for Ray's autoscaler v2, in its field or with the head's
// variable.
func (o *Object) usesAutoscalerV2() bool {
	return o.raySpec().Text("autoscalerOptions", "version") == "v2" || o.autoscalerV2Variable() == "1"
}

// autoscalerV2Variable returns the head's variable RAY_enable_autoscaler_v2 as 1 or 0, or nothing if it is not set.
func (o *Object) autoscalerV2Variable() string {
	for _, g := range groupsOf(o, gpuinfo.Names{}) {
		if g.Workers != nil {
			continue
		}
		v, ok := env(g.rayContainer(), "RAY_enable_autoscaler_v2")
		switch text := strings.ToLower(v.Text()); {
		case !ok || text == "":
		case text == "1" || text == "true":
			return "1"
		default:
			return "0"
		}
	}
	return ""
}

// accepted reports whether the operator has accepted this generation of the spec. It then knows better than the rules
// of one of its versions.
func (o *Object) accepted() bool {
	return o.Cluster.Generation > 0 && o.Cluster.ObservedGeneration >= o.Cluster.Generation
}
