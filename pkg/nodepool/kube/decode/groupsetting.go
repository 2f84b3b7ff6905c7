package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// groupSetting is an annotation that has one word for all groups, or a JSON object of words by group.
type groupSetting struct {
	annotation string
	// words is what a word can be, as text; without is what an unreadable value means, and example a valid object.
	words, without, example string
	valid                   func(word string) bool
	set                     func(g *nodepool.WorkerGroup, word string)
}

// syncGroups sets the modes of the groups from the annotation num-gpus-sync. An unreadable value means report, which
// writes nothing.
func syncGroups(metadata Fields, cluster *nodepool.Cluster) {
	for i := range cluster.Groups {
		cluster.Groups[i].NumGPUsSync = nodepool.SyncReport
	}
	groupSetting{
		annotation: NumGPUsSyncAnnotation, words: "report, when-empty or enforce",
		without: "Heliostat writes nothing there", example: `{"gpu": "when-empty", "cpu": "report"}`,
		valid: func(word string) bool { return nodepool.SyncMode(word).Valid() },
		set:   func(g *nodepool.WorkerGroup, word string) { g.NumGPUsSync = nodepool.SyncMode(word) },
	}.read(metadata, cluster)
}

// countInstances sets how many GPUs a pod with several MIG instances has, from the annotation mig-gpus-per-pod. An
// unreadable value means all.
func countInstances(metadata Fields, cluster *nodepool.Cluster) {
	groupSetting{
		annotation: nodepool.MIGGPUsAnnotation, words: "all or one",
		without: "each MIG instance counts as a GPU", example: `{"mig": "one"}`,
		valid: func(word string) bool { return nodepool.MIGGPUs(word).Valid() },
		set:   func(g *nodepool.WorkerGroup, word string) { g.MIGGPUs = nodepool.MIGGPUs(word) },
	}.read(metadata, cluster)
}

// provisionGroups sets for which groups all nodes of a gang are asked for at once, from the annotation
// provisioning-request. An unreadable value means that they are not.
func provisionGroups(metadata Fields, cluster *nodepool.Cluster) {
	groupSetting{
		annotation: nodepool.ProvisioningAnnotation, words: "true or false",
		without: "no ProvisioningRequest is created there", example: `{"gpu": true}`,
		valid: func(word string) bool { return word == "true" || word == "false" },
		set:   func(g *nodepool.WorkerGroup, word string) { g.Provisions = word == "true" },
	}.read(metadata, cluster)
}

func (s groupSetting) read(metadata Fields, cluster *nodepool.Cluster) {
	text := strings.TrimSpace(metadata.Texts("annotations")[s.annotation])
	unreadable := func(why string) {
		metadata.Report.Add(raydemand.Error, AnnotationUnreadable, metadata.at("annotations")+"."+s.annotation, text,
			why+"; "+s.without, fmt.Sprintf("write %s, or for example %s", s.words, s.example))
	}
	switch {
	case text == "":
	case strings.HasPrefix(text, "{"):
		s.readGroups(text, cluster, unreadable)
	case !s.valid(text):
		unreadable("it is not " + s.words)
	default:
		for i := range cluster.Groups {
			s.set(&cluster.Groups[i], text)
		}
	}
}

func (s groupSetting) readGroups(text string, cluster *nodepool.Cluster, unreadable func(why string)) {
	var words map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		unreadable("it is not a JSON object: " + err.Error())
		return
	}
	for _, group := range slices.Sorted(maps.Keys(words)) {
		at := slices.IndexFunc(cluster.Groups, func(g nodepool.WorkerGroup) bool { return g.Name == group })
		word := strings.Trim(string(words[group]), `"`) // true as well as "true"
		switch {
		case at < 0:
			unreadable(fmt.Sprintf("there is no worker group %q", group))
		case !s.valid(word):
			unreadable(fmt.Sprintf("the value of group %s is %s, want %s", group, words[group], s.words))
		default:
			s.set(&cluster.Groups[at], word)
		}
	}
}
