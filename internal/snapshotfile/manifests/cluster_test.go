package manifests

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestAPlanKnowsWhatTheObjectsOfItsFileSay(t *testing.T) {
	found := func(code string) func(nodepool.Cluster, planner.Snapshot) []string {
		return func(cluster nodepool.Cluster, _ planner.Snapshot) (seen []string) {
			for _, f := range cluster.Findings {
				if f.Code == code {
					seen = append(seen, f.Object+": "+f.Seen)
				}
			}
			return seen
		}
	}
	announced := func(_ nodepool.Cluster, s planner.Snapshot) (labels []string) {
		for _, a := range s.Groups[0].Announces {
			labels = append(labels, a.Name+"="+strings.Join(a.Values, ","))
		}
		return labels
	}
	head := func(_ nodepool.Cluster, s planner.Snapshot) []string {
		return []string{fmt.Sprint("CPU ", s.Head.Resources["CPU"])}
	}
	const (
		gpu, eight, noGPU = `{"nvidia.com/gpu": "1"}`, `{"cpu": "8", "nvidia.com/gpu": "8", "pods": "110"}`, `{"cpu": "8", "pods": "110"}`
		register          = `"name": "n1", "annotations": {"hami.io/node-nvidia-register": "GPU-a,10,15360,100,T4,0,true:GPU-b,10,15360,100,T4,0,true:"}`
		worker            = `{"pod": "w", "group": "g", "state": "RUNNING", "total": {"GPU": 1}, "available": {}, "labels": {"team": "a"}}`
	)
	slice, err := yaml.YAMLToJSON([]byte(offering("gpu.nvidia.com", "nodeName: n1", `attributes: {type: {string: gpu}, productName: {string: Tesla T4}}`)))
	if err != nil {
		t.Fatal(err)
	}
	devices := `, "kubePods": [], "kubeResourceClaims": [], "kubeResourceSlices": [` + string(slice) + `]`
	for name, test := range map[string]struct {
		file string
		show func(nodepool.Cluster, planner.Snapshot) []string
		want string
	}{
		"the beginning of a pool's name is not its name": {
			oneGroup(gpu, `{"cloud.google.com/gke-nodepool": "np"}`, eight, `, "pools": [{"name": "npp", "maxNodes": 1}]`),
			found(planner.FindingPoolWithoutNodes), "[snapshot: npp]"},
		"a pod whose card HAMi did not record": {
			strings.Replace(oneGroup(gpu, `{"gpu": "on"}`, `{"nvidia.com/gpu": "20", "pods": "110"}`, `, "kubePods": [`+podOn("n1", "", "1")+`]`), `"name": "n1"`, register, 1),
			found("card-unrecorded"), "[Node n1: pod /p has no annotation hami.io/vgpu-devices-allocated that names a card of this node, so its part counts on each of the 2 cards]"},
		"a label that only a worker shows": {oneGroup(gpu, `{}`, eight, `, "nodes": [`+worker+`]`), announced, "[accelerator_type:= ray.io/accelerator-type= team=]"},
		"workers announce the cards of their nodes": {
			oneGroup(gpu, `{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}`, eight, ""), announced, "[accelerator_type:=H100 ray.io/accelerator-type=H100]"},
		"where DeviceClasses are unknown, NVIDIA's is usual": {oneGroup(gpu, `{}`, noGPU, devices), found(nodepool.GroupNoNode), "[]"},
		"where there are none, no class supplies devices": {oneGroup(gpu, `{}`, noGPU, devices+`, "kubeDeviceClasses": []`),
			found(nodepool.GroupNoNode), "[RayCluster n/c: needs nvidia.com/gpu 1, no node announces it]"},
		"the head has what its template says": {
			strings.Replace(oneGroup(gpu, `{}`, eight, ""), `{"rayStartParams": {}`, `{"rayStartParams": {"num-cpus": "4"}`, 1), head, "[CPU 4]"},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := snapshotfile.ReadDocument(strings.NewReader(test.file), "file")
			if err != nil {
				t.Fatal(err)
			}
			cluster, err := Cluster(sharing.Reader{}, doc)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(test.show(cluster, Fill(doc.Snapshot, cluster))); got != test.want {
				t.Errorf("%s, want %s\n%+v", got, test.want, cluster.Findings)
			}
		})
	}
}
