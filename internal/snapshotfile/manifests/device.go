package manifests

import (
	"encoding/json"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/dra"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodes"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// readDevices reads the objects of Dynamic Resource Allocation.
func (p *places) readDevices(doc snapshotfile.Document) error {
	for _, of := range []struct {
		raw                 json.RawMessage
		key, kind, resource string
	}{
		{doc.KubeResourceSlices, "kubeResourceSlices", "ResourceSlice", dra.ResourceSlices},
		{doc.KubeResourceClaims, "kubeResourceClaims", "ResourceClaim", dra.ResourceClaims},
		{doc.KubeDeviceClasses, "kubeDeviceClasses", "DeviceClass", dra.DeviceClasses},
		{doc.KubeResourceClaimTemplates, "kubeResourceClaimTemplates", "ResourceClaimTemplate",
			dra.ResourceClaimTemplates},
	} {
		if of.raw != nil {
			p.devices.Know(of.resource)
		}
		if err := p.readDevicesOf(of.raw, of.key, of.kind); err != nil {
			return err
		}
	}
	return nil
}

// readDevicesOf reads the objects of a kind of Dynamic Resource Allocation under a key of the file.
func (p *places) readDevicesOf(raw json.RawMessage, key, kind string) error {
	items, err := objectsOf(raw, key, kind)
	if err != nil {
		return err
	}
	for i, item := range items {
		object := unstructured.Unstructured{Object: item}
		if version := object.GetAPIVersion(); version != "" && !decode.HasDevices(version) {
			return fmt.Errorf("%s[%d]: apiVersion is %s: want %s", key, i, version, resourcev1.SchemeGroupVersion)
		}
		typed := dra.New(kind)
		if unreadable := decode.Typed(item, typed); len(unreadable) > 0 {
			return fmt.Errorf("%s[%d]: reading %s %s: %s", key, i, kind, object.GetName(), unreadable[0])
		}
		if err := dra.Check(typed); err != nil {
			return fmt.Errorf("%s[%d]: %w", key, i, err)
		}
		p.devices.Put(typed)
	}
	return nil
}

// claimsUnknown reports that devices which ResourceClaims have count as free, because the file lacks the claims or the
// slices. It matters to a group that fits a node with GPUs. Pods with claims show that there are some.
func (p places) claimsUnknown(cluster *nodepool.Cluster) {
	missing := ""
	switch claims, slices := p.devices.Lacks(p.claiming); {
	case claims:
		missing = "kubeResourceClaims"
	case slices:
		missing = "kubeResourceSlices"
	}
	onGPUs := func(g nodepool.WorkerGroup) bool { return g.MayLandOnGPUs() }
	if missing == "" || !slices.ContainsFunc(cluster.Groups, onGPUs) {
		return
	}
	cluster.Findings = append(cluster.Findings, raydemand.Finding{Code: nodes.ClaimsUnknown, Severity: raydemand.Info,
		Object: "snapshot", Field: missing, Seen: "missing",
		Why: "pods have devices by ResourceClaims, and the file does not show which, so the plan counts these as " +
			"free; it may launch pods on GPUs that are in use",
		Fix: "add the ResourceSlices and ResourceClaims of all namespaces as kubeResourceSlices and " +
			"kubeResourceClaims: kubectl get resourceslices -o json, kubectl get resourceclaims -A -o json"})
}
