package raydemand

import "testing"

func TestNodeIDIsTwentyEightBytes(t *testing.T) {
	raw := make([]byte, 28)
	raw[0], raw[27] = 0xab, 0x01
	id, err := ParseNodeID(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := id.String(), "ab0000000000000000000000000000000000000000000000000000"+"01"; got != want {
		t.Errorf("printed %s, want %s", got, want)
	}
	for _, n := range []int{0, 2, 27, 29, 56} {
		if _, err := ParseNodeID(make([]byte, n)); err == nil {
			t.Errorf("an id of %d bytes was accepted", n)
		}
	}
}

func TestRestartedGCSIsSeenByItsSessionOrItsVersion(t *testing.T) {
	before := State{Session: "session_1", Version: 40}
	for name, test := range map[string]struct {
		after State
		want  bool
	}{
		"next reading":                       {State{Session: "session_1", Version: 41}, true},
		"others have read meanwhile":         {State{Session: "session_1", Version: 90}, true},
		"new session":                        {State{Session: "session_2", Version: 41}, false},
		"same session, counted from zero":    {State{Session: "session_1", Version: 1}, false},
		"same session, read as often before": {State{Session: "session_1", Version: 40}, false},
	} {
		if got := test.after.SameGCS(before); got != test.want {
			t.Errorf("%s: SameGCS = %v, want %v", name, got, test.want)
		}
	}
}
