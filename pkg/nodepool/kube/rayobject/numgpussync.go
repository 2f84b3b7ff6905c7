package rayobject

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// syncGroups sets the modes of the groups from the annotation num-gpus-sync: one word for all groups, or a JSON object
// of words by group. An unreadable value means report, which writes nothing.
func syncGroups(metadata Fields, cluster *nodepool.Cluster) {
	for i := range cluster.Groups {
		cluster.Groups[i].NumGPUsSync = nodepool.SyncReport
	}
	text := strings.TrimSpace(metadata.Texts("annotations")[NumGPUsSyncAnnotation])
	if text == "" {
		return
	}
	unreadable := func(why string) {
		metadata.Report.Add(
			raydemand.Error,
			AnnotationUnreadable,
			metadata.at("annotations")+"."+NumGPUsSyncAnnotation,
			text,
			why+"; Heliostat writes nothing there",
			`write report, when-empty or enforce, or for example {"gpu": "when-empty", "cpu": "report"}`,
		)
	}
	if !strings.HasPrefix(text, "{") {
		mode := nodepool.SyncMode(text)
		if !mode.Valid() {
			unreadable("it is neither report, when-empty nor enforce")
			return
		}
		for i := range cluster.Groups {
			cluster.Groups[i].NumGPUsSync = mode
		}
		return
	}
	var modes map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &modes); err != nil {
		unreadable("it is not a JSON object: " + err.Error())
		return
	}
	for _, group := range slices.Sorted(maps.Keys(modes)) {
		at := slices.IndexFunc(cluster.Groups, func(g nodepool.WorkerGroup) bool { return g.Name == group })
		var mode nodepool.SyncMode
		switch err := json.Unmarshal(modes[group], &mode); {
		case at < 0:
			unreadable(fmt.Sprintf("there is no worker group %q", group))
		case err != nil || !mode.Valid():
			unreadable(
				fmt.Sprintf("the mode of group %s is %s, want report, when-empty or enforce", group, modes[group]),
			)
		default:
			cluster.Groups[at].NumGPUsSync = mode
		}
	}
}
