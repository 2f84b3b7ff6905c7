package controller

import (
	"testing"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestEffectiveMode(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*nodepool.Cluster)
		form     Form
		fallback nodepool.Mode
		readOnly bool
		// noFallback leaves out --mode.
		noFallback bool
		want       nodepool.Mode
		why        string
	}{
		"the default counts without an annotation":     {fallback: nodepool.Managed, want: nodepool.Managed, why: addon.AsAsked},
		"a default of shadow writes nothing":           {fallback: nodepool.Shadow, want: nodepool.Shadow, why: addon.NotAsked},
		"the annotation overrides the default":         {change: func(c *nodepool.Cluster) { c.Mode = nodepool.Managed }, fallback: nodepool.Off, want: nodepool.Managed, why: addon.AsAsked},
		"read-only goes before an annotation":          {change: func(c *nodepool.Cluster) { c.Mode = nodepool.Managed }, readOnly: true, want: nodepool.Shadow, why: addon.ReadOnly},
		"read-only looks at nothing that is off":       {change: func(c *nodepool.Cluster) { c.Mode = nodepool.Off }, readOnly: true, want: nodepool.Off, why: addon.AsAsked},
		"off is off":                                   {change: func(c *nodepool.Cluster) { c.Mode = nodepool.Off }, want: nodepool.Off, why: addon.AsAsked},
		"a live Python sidecar is never fought":        {change: func(c *nodepool.Cluster) { c.Head.Sidecar = nodepool.RaySidecar }, want: nodepool.Shadow, why: addon.SidecarAlive},
		"not even when management was asked for":       {change: func(c *nodepool.Cluster) { c.Mode, c.Head.Sidecar = nodepool.Managed, nodepool.RaySidecar }, want: nodepool.Shadow, why: addon.SidecarAlive},
		"nor what may be one":                          {change: func(c *nodepool.Cluster) { c.Mode, c.Head.Sidecar = nodepool.Managed, nodepool.UnknownSidecar }, want: nodepool.Shadow, why: addon.SidecarAlive},
		"freeze stops writes":                          {change: func(c *nodepool.Cluster) { c.Freeze = true }, want: nodepool.Shadow, why: addon.Frozen},
		"a suspended cluster is left alone":            {change: func(c *nodepool.Cluster) { c.Suspended = true }, want: nodepool.Shadow, why: addon.Suspended},
		"a cluster being deleted is not even read":     {change: func(c *nodepool.Cluster) { c.Deleting = true }, want: nodepool.Off, why: addon.BeingDeleted},
		"another controller's cluster is left alone":   {change: func(c *nodepool.Cluster) { c.ManagedElsewhere = true }, want: nodepool.Shadow, why: addon.ManagedElsewhere},
		"an unreadable cluster is not written to":      {change: func(c *nodepool.Cluster) { c.Unreadable = true }, want: nodepool.Shadow, why: addon.Unreadable},
		"a cluster owned by a RayJob is managed":       {change: func(c *nodepool.Cluster) { c.Owner = nodepool.Owner{Kind: "RayJob", Name: "j"} }, want: nodepool.Managed, why: addon.AsAsked},
		"the fleet leaves a cluster to our sidecar":    {change: func(c *nodepool.Cluster) { c.Head.Sidecar = nodepool.OurSidecar }, want: nodepool.Shadow, why: addon.SidecarManages},
		"until the annotation hands it to the fleet":   {change: func(c *nodepool.Cluster) { c.Mode, c.Head.Sidecar = nodepool.Managed, nodepool.OurSidecar }, want: nodepool.Managed, why: addon.AsAsked},
		"a queued cluster is only looked at":           {change: func(c *nodepool.Cluster) { c.Queue.Mark = "label" }, want: nodepool.Shadow, why: addon.QueuedByKueue},
		"an elastic one has a code of its own":         {change: func(c *nodepool.Cluster) { c.Queue.Mark, c.Queue.Elastic = "label", true }, want: nodepool.Shadow, why: addon.ElasticQueuedByKueue},
		"not even an annotation has it scaled":         {change: func(c *nodepool.Cluster) { c.Mode, c.Queue.Mark = nodepool.Managed, "label" }, want: nodepool.Shadow, why: addon.QueuedByKueue},
		"shadow as asked names the queue":              {change: func(c *nodepool.Cluster) { c.Mode, c.Queue.Mark = nodepool.Shadow, "label" }, want: nodepool.Shadow, why: addon.QueuedByKueue},
		"a queue that holds it back is named":          {change: func(c *nodepool.Cluster) { c.Suspended, c.Queue.Mark = true, "label" }, want: nodepool.Shadow, why: addon.QueuedByKueue},
		"an owner that is not read may be queued":      {change: func(c *nodepool.Cluster) { c.Queue.Unknown = "?" }, want: nodepool.Shadow, why: addon.QueueUnknown},
		"off is off in a queue too":                    {change: func(c *nodepool.Cluster) { c.Mode, c.Queue.Mark = nodepool.Off, "label" }, want: nodepool.Off, why: addon.AsAsked},
		"a sidecar leaves a queued cluster alone":      {change: func(c *nodepool.Cluster) { c.Head.Sidecar, c.Queue.Mark = nodepool.OurSidecar, "label" }, form: Sidecar, want: nodepool.Shadow, why: addon.QueuedByKueue},
		"gates without a queue mean nothing":           {change: func(c *nodepool.Cluster) { c.Queue.Elastic = true }, want: nodepool.Managed, why: addon.AsAsked},
		"our sidecar manages without an annotation":    {change: func(c *nodepool.Cluster) { c.Head.Sidecar = nodepool.OurSidecar }, form: Sidecar, want: nodepool.Managed, why: addon.AsAsked},
		"a fleet scales nothing that nobody asked for": {noFallback: true, want: nodepool.Shadow, why: addon.NotAsked},
		"the namespace asks for its clusters":          {change: func(c *nodepool.Cluster) { c.NamespaceMode = nodepool.Managed }, noFallback: true, want: nodepool.Managed, why: addon.AsAsked},
		"the namespace goes before --mode":             {change: func(c *nodepool.Cluster) { c.NamespaceMode = nodepool.Off }, want: nodepool.Off, why: addon.AsAsked},
		"its own annotation before the namespace's":    {change: func(c *nodepool.Cluster) { c.Mode, c.NamespaceMode = nodepool.Shadow, nodepool.Managed }, want: nodepool.Shadow, why: addon.AsAsked},
		"what the namespace says is not known":         {change: unknownNamespace, want: nodepool.Shadow, why: addon.NamespaceUnknown},
		"and need not be":                              {change: func(c *nodepool.Cluster) { unknownNamespace(c); c.Mode = nodepool.Managed }, want: nodepool.Managed, why: addon.AsAsked},
		"a sidecar manages unless asked otherwise":     {form: Sidecar, noFallback: true, want: nodepool.Managed, why: addon.AsAsked},
		"a namespace does not speak to a sidecar":      {change: func(c *nodepool.Cluster) { c.NamespaceMode = nodepool.Off }, form: Sidecar, noFallback: true, want: nodepool.Managed, why: addon.AsAsked},
		"our sidecar manages what nobody else asked":   {change: func(c *nodepool.Cluster) { c.Head.Sidecar = nodepool.OurSidecar }, noFallback: true, want: nodepool.Shadow, why: addon.SidecarManages},
		"even in a managed namespace":                  {change: func(c *nodepool.Cluster) { c.NamespaceMode, c.Head.Sidecar = nodepool.Managed, nodepool.OurSidecar }, noFallback: true, want: nodepool.Shadow, why: addon.SidecarManages},
		"and parks when the annotation says the fleet": {change: func(c *nodepool.Cluster) { c.Mode, c.Head.Sidecar = nodepool.Managed, nodepool.OurSidecar }, form: Sidecar, want: nodepool.Shadow, why: addon.Parked},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := nodepool.Cluster{Key: llm}
			if c.change != nil {
				c.change(&cluster)
			}
			if c.form == "" {
				c.form = Fleet
			}
			if c.fallback == "" && !c.noFallback {
				c.fallback = nodepool.Managed
			}
			mode, why := (&Config{Form: c.form, DefaultMode: c.fallback, ReadOnly: c.readOnly}).Effective(cluster)
			if mode != c.want || why.Code != c.why || why.Message == "" {
				t.Errorf("mode = %v because %+v, want %v because %v", mode, why, c.want, c.why)
			}
		})
	}
}

func unknownNamespace(c *nodepool.Cluster) {
	c.NamespaceUnknown = "this process may not read Namespace ml"
}

func TestTheModeSaysWhoAskedForIt(t *testing.T) {
	for want, c := range map[string]struct {
		cluster  nodepool.Cluster
		fallback nodepool.Mode
	}{
		"managed by the annotation heliostat.dev/mode of the RayCluster": {nodepool.Cluster{Mode: nodepool.Managed}, nodepool.Off},
		"off by the annotation heliostat.dev/mode of Namespace ml":       {nodepool.Cluster{NamespaceMode: nodepool.Off}, nodepool.Managed},
		"managed by --mode": {nodepool.Cluster{}, nodepool.Managed},
		"off by --mode":     {nodepool.Cluster{}, nodepool.Off},
		"shadow by --mode: neither the RayCluster nor its namespace has the annotation heliostat.dev/mode":  {nodepool.Cluster{}, nodepool.Shadow},
		"shadow by default: neither the RayCluster nor its namespace has the annotation heliostat.dev/mode": {nodepool.Cluster{}, ""},
		"the Heliostat sidecar in head pod  manages it; annotate heliostat.dev/mode: managed to hand it to the fleet": {
			nodepool.Cluster{Head: nodepool.Head{Sidecar: nodepool.OurSidecar}}, ""},
	} {
		c.cluster.Key = llm
		if _, why := (&Config{DefaultMode: c.fallback}).Effective(c.cluster); why.Message != want {
			t.Errorf("%+v: %q, want %q", c, why.Message, want)
		}
	}
}

func TestExactlyOneOfFleetAndSidecarManagesACluster(t *testing.T) {
	for _, mode := range []nodepool.Mode{"", nodepool.Managed} {
		for _, namespace := range []nodepool.Mode{"", nodepool.Managed, nodepool.Shadow, nodepool.Off} {
			for _, fallback := range []nodepool.Mode{"", nodepool.Managed} {
				cluster := nodepool.Cluster{Key: llm, Mode: mode, NamespaceMode: namespace, Head: nodepool.Head{Sidecar: nodepool.OurSidecar}}
				fleet, _ := (&Config{Form: Fleet, DefaultMode: fallback}).Effective(cluster)
				sidecar, _ := (&Config{Form: Sidecar}).Effective(cluster)
				if (fleet == nodepool.Managed) == (sidecar == nodepool.Managed) {
					t.Errorf("annotation %q, namespace %q, --mode %q: fleet %v, sidecar %v", mode, namespace, fallback, fleet, sidecar)
				}
			}
		}
	}
}

// The namespace's annotation changes between the plan and the patch, which cannot test it.
var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
