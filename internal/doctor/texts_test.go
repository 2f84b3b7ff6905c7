package doctor

import "testing"

func TestASentenceOfTheAPIServerNamesWhoWasRefused(t *testing.T) {
	for message, want := range map[string]string{
		`User "system:serviceaccount:ray:autoscaler" cannot list`: "--serviceaccount=ray:autoscaler",
		`User "jane doe" cannot list`:                             "--user='jane doe'",
		`no`:                                                      "--serviceaccount=heliostat:heliostat  # with the account that doctor runs as",
	} {
		if got := subject(message); got != want {
			t.Errorf("%s: got %s, want %s", message, got, want)
		}
	}
}

func TestPlacesAreWrittenForPeopleAndForPatches(t *testing.T) {
	at := place{"spec", "workerGroupSpecs", 1, "limits", "nvidia.com/gpu", "a~b"}
	if got := at.String(); got != `spec.workerGroupSpecs[1].limits["nvidia.com/gpu"].a~b` {
		t.Errorf("got %s", got)
	}
	if got := at.pointer(); got != "/spec/workerGroupSpecs/1/limits/nvidia.com~1gpu/a~0b" {
		t.Errorf("got %s", got)
	}
}
