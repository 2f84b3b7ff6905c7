package decode

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

func TestATemplateSaysWhichPortsOfTheNodeItsPodsTake(t *testing.T) {
	for _, test := range []struct {
		name, spec string
		want       []landing.HostPort
	}{
		{"none", `containers: [{name: ray, ports: [{containerPort: 8080}]}]`, nil},
		{"a host port", `containers: [{name: ray, ports: [{containerPort: 80, hostPort: 8000, hostIP: 10.0.0.1, protocol: UDP}]}]`,
			[]landing.HostPort{{IP: "10.0.0.1", Protocol: "UDP", Port: 8000}}},
		{"on the node's network, with the operator's port", `{hostNetwork: true, containers: [{name: ray, ports: [{containerPort: 6379}]}, {name: log, ports: [{containerPort: 24224}]}]}`,
			[]landing.HostPort{{Port: 6379}, {Port: 8080}, {Port: 24224}}},
		{"with a port for metrics of its own", `{hostNetwork: true, containers: [{name: ray, ports: [{name: metrics, containerPort: 8090}]}]}`,
			[]landing.HostPort{{Port: 8090}}},
		{"an init container that stays", `{initContainers: [{name: i, ports: [{hostPort: 1}]}, {name: s, restartPolicy: Always, ports: [{hostPort: 2}]}], containers: [{name: ray}]}`,
			[]landing.HostPort{{Port: 2}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := &Report{}
			got := hostPorts(FieldsOf(objectOf(t, test.spec), report))
			if diff := cmp.Diff(test.want, got); diff != "" || len(report.All) > 0 {
				t.Errorf("findings %v, ports (-want +got):\n%s", report.All, diff)
			}
		})
	}
}
