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
