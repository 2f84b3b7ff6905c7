package doctor

import "testing"

func TestSubjectIsTheAccountThatTheAPIServerRefused(t *testing.T) {
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
