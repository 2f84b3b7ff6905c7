package departure

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestEachTaintHasItsSign(t *testing.T) {
	for key, want := range map[string]Notice{
		"karpenter.sh/disrupted":                                 {Sign: "karpenter-disrupted", Certain: true},
		"karpenter.sh/disruption":                                {Sign: "karpenter-disrupted", Certain: true},
		"node.kubernetes.io/out-of-service":                      {Sign: "out-of-service", Certain: true},
		"node.cloudprovider.kubernetes.io/shutdown":              {Sign: "cloud-shutdown", Certain: true},
		"aws-node-termination-handler/spot-itn":                  {Sign: "aws-spot", Certain: true, Reclaimed: true},
		"aws-node-termination-handler/scheduled-maintenance":     {Sign: "aws-maintenance", Certain: true},
		"aws-node-termination-handler/asg-lifecycle-termination": {Sign: "aws-scaling", Certain: true},
		"aws-node-termination-handler/rebalance-recommendation":  {Sign: "aws-rebalance"},
		"cloud.google.com/impending-node-termination":            {Sign: "gke-termination", Certain: true},
		"remediator.kubernetes.azure.com/unschedulable":          {Sign: "aks-drain", Certain: true},
		"remediator.aks.microsoft.com/unschedulable":             {Sign: "aks-drain", Certain: true},
	} {
		want.Message = "taint " + key
		if diff := cmp.Diff(&want, OfTaint(key, "1234567890")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	for key, want := range map[string]Notice{
		"ToBeDeletedByClusterAutoscaler":       {Sign: "cluster-autoscaler-deletes", Certain: true, Since: noon},
		"DeletionCandidateOfClusterAutoscaler": {Sign: "cluster-autoscaler-candidate", Since: noon},
	} {
		want.Message = "taint " + key
		if diff := cmp.Diff(&want, OfTaint(key, "1772452800")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
		if got := OfTaint(key, "soon"); got == nil || !got.Since.IsZero() {
			t.Errorf("%s with a value that is no time: %+v", key, got)
		}
	}
	for _, key := range []string{"nvidia.com/gpu", "node.kubernetes.io/not-ready", "karpenter.sh/unregistered", ""} {
		if got := OfTaint(key, ""); got != nil {
			t.Errorf("%s is a sign: %+v", key, got)
		}
	}
}

func TestEachConditionHasItsSign(t *testing.T) {
	deadline := time.Date(2026, 3, 2, 19, 1, 45, 0, time.UTC)
	for name, c := range map[string]struct {
		kind, reason, message string
		isTrue                bool
		want                  *Notice
	}{
		"a healthy node":       {kind: "Ready", isTrue: true, message: "kubelet is posting ready status"},
		"a node that is lost":  {kind: "Ready", message: "Kubelet stopped posting node status."},
		"a kubelet shuts down": {kind: "Ready", message: "node is shutting down", want: &Notice{Sign: KubeletShutdown, Message: "the kubelet shuts the machine down", Certain: true}},
		"no event":             {kind: "VMEventScheduled", reason: "NoVMEventScheduled", message: "VM has no scheduled event"},
		"a spot machine is taken back": {kind: "VMEventScheduled", isTrue: true, reason: "VMEventScheduled", message: "Preempt Scheduled: Mon, 02 Mar 2026 19:01:45 GMT",
			want: &Notice{Sign: AKSScheduledEvent, Message: "condition VMEventScheduled: Preempt", Certain: true, Reclaimed: true, Deadline: deadline}},
		"by its own condition": {kind: "TerminateScheduled", isTrue: true, want: &Notice{Sign: AKSScheduledEvent, Message: "condition TerminateScheduled: Terminate", Certain: true}},
		"by the reason":        {kind: "VMEventScheduled", isTrue: true, reason: "RedeployScheduled", want: &Notice{Sign: AKSScheduledEvent, Message: "condition VMEventScheduled: Redeploy", Certain: true}},
		"a freeze of seconds":  {kind: "VMEventScheduled", isTrue: true, message: "Freeze Scheduled: Mon, 02 Mar 2026 19:01:45 GMT"},
		"a reboot":             {kind: "RebootScheduled", isTrue: true},
	} {
		if diff := cmp.Diff(c.want, OfCondition(c.kind, c.isTrue, c.reason, c.message)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestACertainSignComesBeforeAWarning(t *testing.T) {
	warning, certain := Of(Cordoned, "cordoned").Until(noon), Of(KarpenterDisrupted, "taint")
	claim := Of(NodeClaimDeleting, "claim").Until(noon.Add(time.Hour))
	for name, c := range map[string]struct{ a, b, want *Notice }{
		"none":                        {nil, nil, nil},
		"one":                         {nil, warning, warning},
		"the other":                   {certain, nil, certain},
		"certain first":               {certain, warning, certain},
		"certain second":              {warning, certain, certain},
		"the deadline of the second":  {certain, claim, Of(KarpenterDisrupted, "taint").Until(noon.Add(time.Hour))},
		"the deadline that is sooner": {claim, Of(PodTerminating, "pod").Until(noon), Of(NodeClaimDeleting, "claim").Until(noon)},
	} {
		if diff := cmp.Diff(c.want, Earlier(c.a, c.b)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	cordoned, bad := Of(Cordoned, "cordoned"), Of(BadGPU, "XID 79")
	stays := *bad
	stays.Stay("why")
	both := Earlier(cordoned, bad)
	if !both.Certain || both.Sign != BadGPU || both.Message != "XID 79" {
		t.Errorf("a certain bad GPU of a cordoned node: %+v", both)
	}
	both.Stay("why")
	for name, got := range map[string]*Notice{"stays": both, "second": Earlier(cordoned, &stays), "first": Earlier(&stays, cordoned)} {
		if diff := cmp.Diff(Of(Cordoned, "cordoned; bad GPU: XID 79"), got); diff != "" || !got.Ends() {
			t.Errorf("a bad GPU that %s hides the cordon (-want +got):\n%s", name, diff)
		}
	}
	if got := Earlier(bad, Of(AWSSpot, "spot")); got.Sign != AWSSpot || !got.Reclaimed || got.Message != "spot; bad GPU: XID 79" {
		t.Errorf("a bad GPU hides a spot notice: %+v", got)
	}
	if !certain.Deadline.IsZero() {
		t.Error("an argument changed")
	}
}

func TestANoticeIsASentence(t *testing.T) {
	notice := OfTaint("karpenter.sh/disrupted", "")
	for want, got := range map[string]string{
		"node ip-1 goes: taint karpenter.sh/disrupted":                   notice.Text("ip-1"),
		"its machine goes at 12:00:00 UTC: taint karpenter.sh/disrupted": OfTaint("karpenter.sh/disrupted", "").Until(noon).Text(""),
		"node ip-1 may go: cordoned":                                     Of(Cordoned, "cordoned").Text("ip-1"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
