package addon

import "testing"

// TestActionsHaveNames: a write that has no replicas is not the end of a name in workersToDelete.
func TestActionsHaveNames(t *testing.T) {
	for want, action := range map[string]Action{
		"scale-up":      {Kind: ActionPatch, Result: ResultOK, From: 1, To: 2},
		"scale-down":    {Kind: ActionPatch, Result: ResultOK, From: 2, To: 1, Pods: []string{"a"}},
		"replace":       {Kind: ActionPatch, Result: ResultOK, From: 2, To: 2, Pods: []string{"a"}},
		"clear":         {Kind: ActionPatch, Result: ResultOK, From: 2, To: 2},
		"drain-refused": {Kind: ActionDrain, Result: ResultRefused},
		"drain":         {Kind: ActionDrain, Result: ResultOK},
		"num-gpus":      {Kind: ActionSync, Result: ResultOK, From: 1, To: 2},
		"idle":          {Kind: ActionIdle, Result: ResultOK},
		"nodes":         {Kind: ActionNodes, Result: ResultOK},
		"nodes-error":   {Kind: ActionNodes, Result: ResultError},
	} {
		if got := action.Name(); got != want {
			t.Errorf("%+v is %q, want %q", action, got, want)
		}
	}
}
